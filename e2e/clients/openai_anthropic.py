"""The official OpenAI and Anthropic clients against a gateway that serves the demonstration's model.

Usage: openai_anthropic.py GATEWAY_URL, with `modelplane up --demo` running. Ends with an assertion error if a client
does not get what it should.
"""

import sys

import anthropic
import openai

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def say(text):
    return [{"role": "user", "content": text}]


def openai_session(base_url, model):
    client = openai.OpenAI(base_url=base_url, api_key="none", max_retries=0)
    assert model in [listed.id for listed in client.models.list()], "the model is listed"

    answer = client.chat.completions.create(model=model, messages=say("hello"))
    assert "You said: hello" in answer.choices[0].message.content
    assert answer.usage.total_tokens > 0

    stream = client.chat.completions.create(
        model=model, stream=True, stream_options={"include_usage": True}, messages=say("hello")
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "You said: hello" in text
    assert chunks[-1].usage.total_tokens > 0, "the last chunk has the usage"

    call = client.chat.completions.create(model=model, messages=say("weather?"), tools=[TOOL])
    assert call.choices[0].finish_reason == "tool_calls"
    assert call.choices[0].message.tool_calls[0].function.name == "get_weather"

    embeddings = client.embeddings.create(model=model, input=["a", "b"])
    assert len(embeddings.data) == 2 and embeddings.data[0].embedding != embeddings.data[1].embedding

    assert client.responses.create(model=model, input="hello").output_text
    events = [event.type for event in client.responses.create(model=model, input="hello", stream=True)]
    assert events[0] == "response.created" and events[-1] == "response.completed", events

    try:
        client.chat.completions.create(model="no/such", messages=say("hello"))
        raise AssertionError("a model that is not served is refused")
    except openai.NotFoundError as error:
        assert error.body["message"], error.body


def anthropic_session(base_url, model):
    client = anthropic.Anthropic(base_url=base_url, api_key="none", max_retries=0)
    answer = client.messages.create(model=model, max_tokens=50, messages=say("hello"))
    assert "You said: hello" in answer.content[0].text and answer.usage.output_tokens > 0
    with client.messages.stream(model=model, max_tokens=50, messages=say("hello")) as stream:
        assert "You said: hello" in "".join(stream.text_stream)


def main(gateway):
    openai_session(gateway + "/ml-team/chat/v1", "qwen")
    openai_session(gateway + "/v1", "ml-team/chat")
    anthropic_session(gateway + "/ml-team/chat", "qwen")
    print(f"openai {openai.__version__} and anthropic {anthropic.__version__}: every step holds")


main(sys.argv[1])

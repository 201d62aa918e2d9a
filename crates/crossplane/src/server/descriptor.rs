//! The protocol's descriptor, for gRPC reflection.
//!
//! The messages are listed below in a shorthand: `number name type`, where a type in capitals is a message
//! or enum, `map T` a map from string to T, `many T` a repeated T. Field numbers are those of
//! `apiextensions.fn.proto.v1` and of `google.protobuf`.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto, ServiceDescriptorProto,
};

const STRUCT: &str = "
message Struct: 1 fields map Value
message Value: 1 null_value enum NullValue, 2 number_value double, 3 string_value string, 4 bool_value bool, 5 struct_value Struct, 6 list_value ListValue
message ListValue: 1 values many Value
enum NullValue: NULL_VALUE
";

const DURATION: &str = "
message Duration: 1 seconds int64, 2 nanos int32
";

const FUNCTION: &str = "
message RunFunctionRequest: 1 meta RequestMeta, 2 observed State, 3 desired State, 4 input google.protobuf.Struct, 5 context google.protobuf.Struct, 6 extra_resources map Resources, 7 credentials map Credentials, 8 required_resources map Resources, 9 required_schemas map Schema
message Credentials: 1 credential_data CredentialData
message CredentialData: 1 data map bytes
message Resources: 1 items many Resource
message Schema: 1 openapi_v3 google.protobuf.Struct
message RunFunctionResponse: 1 meta ResponseMeta, 2 desired State, 3 results many Result, 4 context google.protobuf.Struct, 5 requirements Requirements, 6 conditions many Condition, 7 output google.protobuf.Struct
message RequestMeta: 1 tag string, 2 capabilities many enum Capability
message ResponseMeta: 1 tag string, 2 ttl google.protobuf.Duration
message Requirements: 1 extra_resources map ResourceSelector, 2 resources map ResourceSelector, 3 schemas map SchemaSelector
message SchemaSelector: 1 api_version string, 2 kind string
message ResourceSelector: 1 api_version string, 2 kind string, 3 match_name string, 4 match_labels MatchLabels, 5 namespace string
message MatchLabels: 1 labels map string
message State: 1 composite Resource, 2 resources map Resource
message Resource: 1 resource google.protobuf.Struct, 2 connection_details map bytes, 3 ready enum Ready
message Result: 1 severity enum Severity, 2 message string, 3 reason string, 4 target enum Target
message Condition: 1 type string, 2 status enum Status, 3 reason string, 4 message string, 5 target enum Target
enum Capability: CAPABILITY_UNSPECIFIED CAPABILITY_CAPABILITIES CAPABILITY_REQUIRED_RESOURCES CAPABILITY_CREDENTIALS CAPABILITY_CONDITIONS CAPABILITY_REQUIRED_SCHEMAS
enum Ready: READY_UNSPECIFIED READY_TRUE READY_FALSE
enum Severity: SEVERITY_UNSPECIFIED SEVERITY_FATAL SEVERITY_WARNING SEVERITY_NORMAL
enum Target: TARGET_UNSPECIFIED TARGET_COMPOSITE TARGET_COMPOSITE_AND_CLAIM
enum Status: STATUS_CONDITION_UNSPECIFIED STATUS_CONDITION_UNKNOWN STATUS_CONDITION_TRUE STATUS_CONDITION_FALSE
";

const PACKAGE: &str = "apiextensions.fn.proto.v1";

/// The service, its messages and the well-known types they use.
pub(super) fn file_descriptor_set() -> FileDescriptorSet {
    let mut function = file("run_function.proto", PACKAGE, FUNCTION);
    function.dependency =
        vec!["google/protobuf/duration.proto".to_owned(), "google/protobuf/struct.proto".to_owned()];
    function.service.push(ServiceDescriptorProto {
        name: Some("FunctionRunnerService".to_owned()),
        method: vec![MethodDescriptorProto {
            name: Some("RunFunction".to_owned()),
            input_type: Some(format!(".{PACKAGE}.RunFunctionRequest")),
            output_type: Some(format!(".{PACKAGE}.RunFunctionResponse")),
            ..MethodDescriptorProto::default()
        }],
        ..ServiceDescriptorProto::default()
    });
    let structs = file("google/protobuf/struct.proto", "google.protobuf", STRUCT);
    let durations = file("google/protobuf/duration.proto", "google.protobuf", DURATION);
    FileDescriptorSet { file: vec![structs, durations, function] }
}

fn file(name: &str, package: &str, shorthand: &str) -> FileDescriptorProto {
    let mut file = FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(package.to_owned()),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    for line in shorthand.lines() {
        let Some((head, body)) = line.split_once(": ") else { continue };
        if let Some(name) = head.strip_prefix("message ") {
            file.message_type.push(message(package, name, body));
        } else if let Some(name) = head.strip_prefix("enum ") {
            let values = body.split(' ').zip(0..).map(|(value, number)| EnumValueDescriptorProto {
                name: Some(value.to_owned()),
                number: Some(number),
                ..EnumValueDescriptorProto::default()
            });
            let name = Some(name.to_owned());
            file.enum_type.push(EnumDescriptorProto {
                name,
                value: values.collect(),
                ..EnumDescriptorProto::default()
            });
        }
    }
    file
}

fn message(package: &str, name: &str, body: &str) -> DescriptorProto {
    let mut message = DescriptorProto { name: Some(name.to_owned()), ..DescriptorProto::default() };
    for item in body.split(", ") {
        let mut words = item.splitn(3, ' ');
        let (Some(number), Some(field), Some(kind)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let number = number.parse().unwrap_or_default();
        if let Some(value) = kind.strip_prefix("map ") {
            let entry = format!("{}Entry", camel(field));
            let path = format!("{package}.{name}.{entry}");
            message.field.push(typed(
                field,
                number,
                Label::Repeated,
                Type::Message,
                Some(format!(".{path}")),
            ));
            message.nested_type.push(map_entry(package, entry, value));
        } else if let Some(item) = kind.strip_prefix("many ") {
            message.field.push(plain(package, field, number, Label::Repeated, item));
        } else {
            message.field.push(plain(package, field, number, Label::Optional, kind));
        }
    }
    message
}

fn map_entry(package: &str, name: String, value: &str) -> DescriptorProto {
    DescriptorProto {
        name: Some(name),
        field: vec![
            plain(package, "key", 1, Label::Optional, "string"),
            plain(package, "value", 2, Label::Optional, value),
        ],
        options: Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() }),
        ..DescriptorProto::default()
    }
}

fn plain(package: &str, name: &str, number: i32, label: Label, kind: &str) -> FieldDescriptorProto {
    let scalar = match kind {
        "string" => Some(Type::String),
        "bytes" => Some(Type::Bytes),
        "bool" => Some(Type::Bool),
        "double" => Some(Type::Double),
        "int32" => Some(Type::Int32),
        "int64" => Some(Type::Int64),
        _ => None,
    };
    if let Some(scalar) = scalar {
        return typed(name, number, label, scalar, None);
    }
    let (kind, of) = match kind.strip_prefix("enum ") {
        Some(kind) => (kind, Type::Enum),
        None => (kind, Type::Message),
    };
    let path = if kind.contains('.') { format!(".{kind}") } else { format!(".{package}.{kind}") };
    typed(name, number, label, of, Some(path))
}

fn typed(name: &str, number: i32, label: Label, of: Type, type_name: Option<String>) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(of.into()),
        type_name,
        ..FieldDescriptorProto::default()
    }
}

/// `snake_case` as `CamelCase`, which is how protobuf names the entries of a map.
fn camel(text: &str) -> String {
    let words = text.split('_').filter_map(|word| Some((word.get(..1)?.to_uppercase(), word.get(1..)?)));
    words.map(|(first, rest)| first + rest).collect()
}

//! Column names and types from a Parquet schema.

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{ColumnDescriptor, Type as SchemaType};

use crate::formats::table::data::ColumnType;

/// The name of a column: its path without the groups that only encode a list.
pub(super) fn name(root: &SchemaType, column: &ColumnDescriptor) -> String {
    let parts = column.path().parts();
    if column.max_rep_level() == 0 {
        return parts.join(".");
    }
    let mut node = root;
    for (i, part) in parts.iter().enumerate() {
        let is_list = node.get_basic_info().converted_type() == ConvertedType::LIST;
        let fields = if node.is_group() { node.get_fields() } else { &[] };
        let Some(field) = fields.iter().find(|field| field.name() == part) else { break };
        let info = field.get_basic_info();
        if info.has_repetition() && info.repetition() == Repetition::REPEATED {
            let own = if field.is_group() || is_list { i } else { i + 1 };
            let rest = parts.get(i + 2..).unwrap_or_default();
            return [&parts[..own], rest].concat().join(".");
        }
        node = field;
    }
    parts.join(".")
}

pub(super) fn kind(column: &ColumnDescriptor) -> ColumnType {
    let scalar = match column.physical_type() {
        Physical::BOOLEAN => ColumnType::Bool,
        Physical::INT32 | Physical::INT64 if decimal(column).is_some() => ColumnType::Float,
        Physical::INT32 | Physical::INT64 | Physical::INT96 => ColumnType::Int,
        Physical::FLOAT => ColumnType::Float32,
        Physical::DOUBLE => ColumnType::Float,
        Physical::BYTE_ARRAY if decimal(column).is_some() => ColumnType::Other("decimals of any length"),
        Physical::BYTE_ARRAY => ColumnType::Text,
        Physical::FIXED_LEN_BYTE_ARRAY => ColumnType::Other("bytes of fixed length"),
    };
    match (column.max_rep_level(), scalar) {
        (0, scalar) => scalar,
        (1, ColumnType::Text) => ColumnType::Other("lists of text"),
        (1, ColumnType::Other(what)) => ColumnType::Other(what),
        (1, _) if decimal(column).is_some() => ColumnType::Other("lists of decimals"),
        (1, _) => ColumnType::List,
        _ => ColumnType::Other("lists of lists"),
    }
}

/// The scale of a decimal column: its digits after the point.
pub(super) fn decimal(column: &ColumnDescriptor) -> Option<i32> {
    let is_decimal = matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_)))
        || column.converted_type() == ConvertedType::DECIMAL;
    is_decimal.then(|| column.type_scale())
}

pub(super) fn is_unsigned(column: &ColumnDescriptor) -> bool {
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    matches!(column.converted_type(), UINT_8 | UINT_16 | UINT_32 | UINT_64)
        || matches!(column.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed)
}

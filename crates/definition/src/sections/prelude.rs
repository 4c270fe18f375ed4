//! The imports that every section needs.

pub(crate) use jackline_engine::Definition;

pub(crate) use super::{JoinStep, LayerDemands, Section};
pub(crate) use crate::keys::ValueType::*;
pub(crate) use crate::keys::{
    I64_MAX, KeySpec, MappingSpec, RequiredKeys, TEXT_LIST, U16_MAX, U32_MAX, ValueType,
    WEB_ADDRESS, key, words_of,
};
#[cfg(test)]
pub(crate) use crate::layers::every_key::{Looser, looser};
pub(crate) use crate::layers::{
    Demand, DemandLines, DemandSubject, LayerJoin, LayerSource, join_smaller_numbers, union, values,
};
pub(crate) use crate::lower::LoweringState;
pub(crate) use crate::reader::NodeReader;
pub(crate) use crate::yaml::{YamlNode, YamlValue};

//! The names that every section uses.

pub(crate) use jackline_engine::Definition;

pub(crate) use super::{JoinStep, LayerDemands, Section};
pub(crate) use crate::keys::Takes::*;
pub(crate) use crate::keys::{
    ADDRESS, I64, Key, Keys, Needs, TEXTS, Takes, U16, U32, key, words_of,
};
#[cfg(test)]
pub(crate) use crate::layers::every_key::{Looser, looser};
pub(crate) use crate::layers::{
    Demand, EffectiveLines, LayerJoin, LayerSource, Subject, join_smaller, union, values,
};
pub(crate) use crate::lower::Lowering;
pub(crate) use crate::reader::Reader;
pub(crate) use crate::yaml::{Node, NodeValue};

//! Removal of Parameters and Results of bodies, with the ports of the layer that belong to them.

use super::Edit;
use crate::model::graph::{BackEdge, Direction, EditError, LayerId, PortMapEntry};

impl Edit<'_> {
    /// Removes an unused Parameter or a Result of a layer's body, and its back edge to a Parameter. A Result that feeds
    /// the next iteration stays. Inputs and outputs of the layer that no body uses any more are removed too.
    ///
    /// # Errors
    /// [`EditError::NoBody`]; [`EditError::InUse`] if a layer uses the Parameter, or an output that would be removed.
    pub fn remove_body_end(&mut self, layer: LayerId, at: usize, end: LayerId) -> Result<(), EditError> {
        let owner = self.graph.checked(layer)?;
        let body = owner.bodies().get(at).ok_or(EditError::NoBody { layer, at })?;
        let (lost, left): (Vec<_>, Vec<_>) =
            body.port_map.iter().cloned().partition(|entry| entry.internal_layer_id == end);
        let back_edges: Vec<BackEdge> = body.back_edges.iter().copied().filter(|edge| edge.to != end).collect();
        let is_carried = back_edges.iter().any(|edge| edge.from == end);
        self.graph.join(layer, at, left, back_edges);
        if !is_carried {
            self.body(layer, at)?.remove(end)?;
        }
        for entry in lost.iter().filter(|entry| entry.external_port_id >= 0) {
            let is_same = |other: &PortMapEntry| {
                (other.direction, other.external_port_id) == (entry.direction, entry.external_port_id)
            };
            let bodies = self.graph.layer(layer).map(|owner| owner.bodies()).unwrap_or_default();
            if bodies.iter().flat_map(|body| &body.port_map).any(is_same) {
                continue;
            }
            match entry.direction {
                Direction::Input => self.remove_input_port(layer, entry.external_port_id)?,
                Direction::Output => self.remove_output_port(layer, entry.external_port_id)?,
            }
        }
        self.refresh_outputs(layer)
    }

    /// Removes an input of a layer with bodies. Inputs after it move to the front.
    fn remove_input_port(&mut self, layer: LayerId, port: i64) -> Result<(), EditError> {
        let count = self.producers(layer).len();
        let first = usize::try_from(port).unwrap_or(count);
        let sources: Vec<_> = (first + 1..count).map(|at| (at, self.producer(layer.input(at)))).collect();
        let moved = sources.into_iter().filter_map(|(at, source)| Some((source?, layer.input(at - 1))));
        self.connect_all(moved.collect::<Vec<_>>())?;
        self.changed(layer)?;
        self.graph.resize_inputs(layer, count.saturating_sub(1));
        self.relabel(layer, |entry| {
            if entry.direction == Direction::Input && entry.external_port_id > port {
                entry.external_port_id -= 1;
            }
        });
        Ok(())
    }

    /// Removes an unused output of a layer with bodies. Outputs after it move to the front.
    fn remove_output_port(&mut self, layer: LayerId, label: i64) -> Result<(), EditError> {
        let owner = self.graph.checked(layer)?;
        let count = owner.outputs().len();
        let labels: Vec<i64> = (0..count).map(|port| owner.output_label(port)).collect();
        let Some(first) = labels.iter().position(|&it| it == label) else { return Ok(()) };
        if let Some(input) = self.consumers(layer.output(first)).next() {
            return Err(EditError::InUse { layer, consumer: input.layer });
        }
        let ports = self.graph.checked(layer)?.outputs();
        let types: Vec<_> =
            ports.iter().enumerate().filter(|(port, _)| *port != first).map(|(_, port)| port.tensor_type()).collect();
        for port in first + 1..count {
            let names = self.graph.output(layer.output(port)).and_then(|port| port.names.clone());
            self.graph.name_output(layer.output(port - 1), names);
            let inputs: Vec<_> = self.consumers(layer.output(port)).collect();
            self.connect_all(inputs.into_iter().map(|input| (layer.output(port - 1), input)))?;
        }
        self.graph.set_outputs(layer, types)?;
        self.relabel(layer, |entry| {
            let port = labels.iter().position(|&it| it == entry.external_port_id);
            if let (Direction::Output, Some(port)) = (entry.direction, port.filter(|&port| port > first)) {
                entry.external_port_id = labels[port - 1];
            }
        });
        Ok(())
    }

    fn relabel(&mut self, layer: LayerId, change: impl Fn(&mut PortMapEntry)) {
        let bodies = self.graph.layer(layer).map_or(0, |owner| owner.bodies().len());
        for at in 0..bodies {
            let Some(body) = self.graph.layer(layer).and_then(|owner| owner.bodies().get(at)) else { continue };
            let (mut port_map, back_edges) = (body.port_map.to_vec(), body.back_edges.to_vec());
            port_map.iter_mut().for_each(&change);
            self.graph.join(layer, at, port_map, back_edges);
        }
    }
}

//! Strongly connected components.

use crate::sparse::Csr;

/// Strongly connected components of the pattern of `t` (Tarjan, without recursion): states grouped by component,
/// each component after the ones it leads to.
pub(crate) fn components(t: &Csr) -> (Vec<u32>, Vec<usize>) {
    const NEW: u32 = u32::MAX;
    let n = t.rows();
    let mut index = vec![NEW; n];
    let mut low = vec![0u32; n];
    let mut on_stack = vec![false; n];
    let mut stack: Vec<u32> = Vec::new();
    let mut calls: Vec<(u32, usize)> = Vec::new();
    let mut order = Vec::with_capacity(n);
    let mut starts = vec![0];
    let mut counter = 0;
    for root in 0..n {
        if index[root] != NEW {
            continue;
        }
        calls.push((root as u32, 0));
        while let Some(&(i, edge)) = calls.last() {
            let u = i as usize;
            if edge == 0 {
                index[u] = counter;
                low[u] = counter;
                counter += 1;
                stack.push(i);
                on_stack[u] = true;
            }
            let child = t.row(u).skip(edge).map(|(j, _)| j).enumerate().find(|&(_, j)| {
                if index[j] == NEW {
                    return true;
                }
                if on_stack[j] {
                    low[u] = low[u].min(index[j]);
                }
                false
            });
            if let Some((skipped, j)) = child {
                if let Some(call) = calls.last_mut() {
                    call.1 = edge + skipped + 1;
                }
                calls.push((j as u32, 0));
                continue;
            }
            calls.pop();
            if let Some(&(parent, _)) = calls.last() {
                low[parent as usize] = low[parent as usize].min(low[u]);
            }
            if low[u] == index[u] {
                while let Some(j) = stack.pop() {
                    on_stack[j as usize] = false;
                    order.push(j);
                    if j == i {
                        break;
                    }
                }
                starts.push(order.len());
            }
        }
    }
    (order, starts)
}

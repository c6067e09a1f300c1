//! Python brings its symbols when it loads the library; macOS must be told so.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}

"""The stubs are written by hand: they name what there is."""

import ast
import inspect
from pathlib import Path

import album_rl as al
from album_rl import _album

FOLDER = Path(al.__file__).parent


def stub(name):
    tree = ast.parse((FOLDER / name).read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return functions, classes


def parameters(node):
    named = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
    extra = [node.args.kwarg] if node.args.kwarg else []
    return [argument.arg for argument in named + extra]


def test_names_and_keywords():
    functions, classes = stub("__init__.pyi")
    assert set(functions) | set(classes) == set(al.__all__)
    for name, node in functions.items():
        assert parameters(node) == list(inspect.signature(getattr(al, name)).parameters), name
    for name, node in classes.items():
        kind = getattr(al, name)
        for method in (item for item in node.body if isinstance(item, ast.FunctionDef)):
            found = inspect.getattr_static(kind, method.name)
            if isinstance(found, property):
                continue
            function = found.__func__ if isinstance(found, classmethod) else found
            expected = list(inspect.signature(function).parameters)
            assert parameters(method) == expected, f"{name}.{method.name}"
        public = {key for key in vars(kind) if not key.startswith("_")}
        stubbed = {getattr(item, "name", None) or item.target.id for item in node.body if not isinstance(item, ast.Expr)}
        assert public <= stubbed, f"{name}: {public - stubbed}"


def test_the_native_module():
    functions, classes = stub("_album.pyi")
    assert set(functions) | set(classes) == {name for name in dir(_album) if not name.startswith("__")}
    for name, node in classes.items():
        stubbed = {item.name for item in node.body}
        public = {key for key in vars(getattr(_album, name)) if not key.startswith("_")}
        assert public <= stubbed, f"{name}: {public - stubbed}"


def test_the_package_is_typed():
    assert (FOLDER / "py.typed").exists()

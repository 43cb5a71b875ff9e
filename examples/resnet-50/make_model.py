"""Writes resnet50.onnx: the network of He et al. 2016 with 50 layers, without weights.  Needs the package onnx."""

from __future__ import annotations

from pathlib import Path

from onnx import NodeProto, TensorProto, ValueInfoProto, helper, save

#: Blocks of each stage, and the channels within them.
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))
FLOAT = TensorProto.FLOAT


class Network:
    """Nodes in their order, and weights whose data lie elsewhere."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def weight(self, name: str, *shape: int) -> str:
        """A weight of that shape."""
        tensor = TensorProto(name=name, data_type=FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="resnet50.weights")
        self.weights.append(tensor)
        return name

    def add(self, kind: str, name: str, *reads: str, **attributes: object) -> str:
        """A node; what it makes has its name."""
        self.nodes.append(helper.make_node(kind, reads, [name], name=name, **attributes))
        return name

    def convolution(self, name: str, x: str, ends: tuple[int, int], size: int = 1, stride: int = 1) -> str:
        """A convolution, whose batch norm is folded into weights and bias; ``ends``: channels in and out."""
        kernel, bias = self.weight(f"{name}.weight", ends[1], ends[0], size, size), self.weight(f"{name}.bias", ends[1])
        pads = [size // 2] * 4
        return self.add("Conv", name, x, kernel, bias, kernel_shape=[size] * 2, strides=[stride] * 2, pads=pads)

    def block(self, name: str, x: str, channels: int, inner: int, stride: int) -> str:
        """A bottleneck block: one by one, three by three, one by one, and a residual connection."""
        y = self.add("Relu", f"{name}/relu1", self.convolution(f"{name}/conv1", x, (channels, inner)))
        y = self.add("Relu", f"{name}/relu2", self.convolution(f"{name}/conv2", y, (inner, inner), 3, stride))
        y = self.convolution(f"{name}/conv3", y, (inner, 4 * inner))
        if channels != 4 * inner:
            x = self.convolution(f"{name}/shortcut", x, (channels, 4 * inner), 1, stride)
        return self.add("Relu", f"{name}/relu3", self.add("Add", f"{name}/add", y, x))


def value(name: str, *shape: object) -> ValueInfoProto:
    """An input or an output."""
    return helper.make_tensor_value_info(name, FLOAT, shape)


def main() -> None:
    """Write the file beside this one."""
    net = Network()
    x = net.add("Relu", "/stem/relu", net.convolution("/stem/conv", "picture", (3, 64), 7, 2))
    x = net.add("MaxPool", "/stem/pool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels, number = 64, 0
    for stage, (blocks, inner) in enumerate(STAGES):
        for k in range(blocks):
            x = net.block(f"/blocks.{number}", x, channels, inner, 2 if stage and not k else 1)
            channels, number = 4 * inner, number + 1
    x = net.add("Flatten", "/head/flatten", net.add("GlobalAveragePool", "/head/pool", x))
    net.add("Gemm", "scores", x, net.weight("fc.weight", 1000, 2048), net.weight("fc.bias", 1000), transB=1)
    graph = helper.make_graph(
        net.nodes, "resnet50", [value("picture", "batch", 3, 224, 224)], [value("scores", "batch", 1000)], net.weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save(model, Path(__file__).with_name("resnet50.onnx"))


if __name__ == "__main__":
    main()

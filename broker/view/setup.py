"""What `init` made and how to point clients at the sandbox, as text and JSON."""

from broker.commands.initial import Made
from broker.commands.local_clouds import Clouds
from broker.view.document import document


def init_text(made: Made) -> str:
    files = f"{', '.join(str(path) for path in made.files)} and " if made.files else ""
    lines = [f"Wrote {files}{made.state} (state {made.lineage})."]
    if made.kept:
        lines.append(f"Left as they were: {', '.join(str(path) for path in made.kept)}.")
    return "\n".join([*lines, *_next(made)])


def _next(made: Made) -> list[str]:
    if made.config in made.kept:
        return [
            "Was there a state before? What it bought is not known to this one: remove this one, then "
            f"broker state adopt -c {made.config}"
        ]
    if made.sandbox:
        return [f"These clouds are built in and cost nothing. Try: broker plan -c {made.config}"]
    return [
        f"Name your clouds and queue in it, then: broker check -c {made.config}",
        "It watches and buys nothing until you set mode = \"act\".",
    ]  # fmt: skip


def init_json(made: Made) -> str:
    return document(
        "init",
        {
            "config": str(made.config),
            "state": str(made.state),
            "lineage": made.lineage,
            "written": [str(path) for path in made.files],
            "kept": [str(path) for path in made.kept],
        },
    )


def sandbox_text(clouds: Clouds) -> str:
    lines = [f"Three clouds at {clouds.endpoint} (loopback only); it is {clouds.now:%Y-%m-%d %H:%M:%S} UTC there.", ""]
    lines += ["For boto3 and the AWS command line:"]
    lines += [f"  export {name}={value}" for name, value in clouds.env.items()]
    for library, code in clouds.code.items():
        lines += ["", f"For {library}:", *(f"  {line}" for line in code.rstrip().splitlines())]
    lines += ["", "For the broker, in broker.toml:", "  [sandbox]"]
    lines += [f'  {name} = "{clouds.endpoint}"' for name in ("aws", "gcp", "azure")]
    lines += ["", f"Clock, faults and capacity: curl {clouds.endpoint}/_sandbox/health"]
    return "\n".join(lines)


def sandbox_json(clouds: Clouds) -> str:
    return document("sandbox", {"endpoint": clouds.endpoint, "env": clouds.env, "code": clouds.code})

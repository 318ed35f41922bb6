"""Made-up output of ibnetdiscover for a rail-optimised cluster, for tests of any layer."""

from __future__ import annotations

from itertools import count

SHARP = "Mellanox Technologies Aggregation Node"
DATE = "Wed Aug  6 16:11:23 2025"


def ibnetdiscover_text(
    hosts: int,
    *,
    rails: int = 8,
    hosts_per_unit: int = 32,
    spines: int = 16,
    parallel: int = 2,
    speed: str = "4xNDR",
    sharp: bool = True,
    adapter: str = "mlx5_{rail}",
) -> str:
    """What a scan of such a cluster prints.

    HCA ``r`` of a host hangs on leaf ``r`` of its unit; every leaf has ``parallel`` links
    to every spine; with ``sharp``, every switch has an aggregation node on its last, odd port.
    The file has ``hosts * rails`` adapters, ``units * rails`` leaves and ``spines`` spines.
    """
    units = -(-hosts // hosts_per_unit)
    ports = max(hosts_per_unit + parallel * spines, parallel * units * rails, 64) | 1
    guids = count(0xA088C20300000000, 16)
    leaf = {(u, r): next(guids) for u in range(units) for r in range(rails)}
    spine = {s: next(guids) for s in range(spines)}
    adapters = {(h, r): next(guids) for h in range(hosts) for r in range(rails)}
    trees = {guid: next(guids) for guid in (*leaf.values(), *spine.values()) if sharp}
    lids = {guid: lid for lid, guid in enumerate((*leaf.values(), *spine.values()), start=1)}
    lids |= {guid: len(lids) + lid for lid, guid in enumerate(adapters.values(), start=1)}

    def leaf_name(unit: int, rail: int) -> str:
        return f"MF0;A{unit + 1:02d}-P1-IBLEAF-{unit + 1:02d}-{rail + 1:02d}:MQM9701/U1"

    def spine_name(number: int) -> str:
        return f"MF0;B{number // 4 + 1:02d}-P1-IBSPINE-{number + 1:02d}:MQM9701/U1"

    def host_name(host: int, rail: int) -> str:
        return f"a{host // 4 + 1:02d}-p1-dgx-{host + 1:03d}-c01 {adapter.format(rail=rail)}"

    def switch(guid: int, name: str, links: list[str]) -> str:
        if sharp:
            far = trees[guid]
            links = [
                *links,
                f'[{ports}]\t"H-{far:016x}"[1]({far:x}) \t\t# "{SHARP}"'
                f" lid {50_000 + lids[guid]} {speed}",
            ]
        return "\n".join(
            [
                "vendid=0x2c9",
                "devid=0xd2f2",
                f"sysimgguid=0x{guid:x}",
                f"switchguid=0x{guid:x}({guid:x})",
                f'Switch\t{ports} "S-{guid:016x}"\t\t# "{name}" enhanced port 0 '
                f"lid {lids[guid]} lmc 0",
                *links,
                "",
            ]
        )

    def up_port(unit: int, rail: int, link: int) -> int:
        return parallel * (unit * rails + rail) + link + 1

    def towards_switch(port: int, guid: int, far: int, name: str) -> str:
        return f'[{port}]\t"S-{guid:016x}"[{far}]\t\t# "{name}" lid {lids[guid]} {speed}'

    blocks = []
    for (unit, rail), guid in leaf.items():
        links = []
        for place, host in enumerate(
            range(unit * hosts_per_unit, min(hosts, (unit + 1) * hosts_per_unit))
        ):
            far = adapters[host, rail]
            links.append(
                f'[{place + 1}]\t"H-{far:016x}"[1]({far:x}) \t\t# "{host_name(host, rail)}"'
                f" lid {lids[far]} {speed}"
            )
        links += [
            towards_switch(
                hosts_per_unit + 1 + parallel * s + k,
                spine[s],
                up_port(unit, rail, k),
                spine_name(s),
            )
            for s in range(spines)
            for k in range(parallel)
        ]
        blocks.append(switch(guid, leaf_name(unit, rail), links))
    for s, guid in spine.items():
        links = [
            towards_switch(
                up_port(unit, rail, k),
                leaf[unit, rail],
                hosts_per_unit + 1 + parallel * s + k,
                leaf_name(unit, rail),
            )
            for unit in range(units)
            for rail in range(rails)
            for k in range(parallel)
        ]
        blocks.append(switch(guid, spine_name(s), links))
    for guid, far in trees.items():
        blocks.append(
            _adapter(
                far,
                SHARP,
                1,
                [
                    f'[1]({far:x}) \t"S-{guid:016x}"[{ports}]\t\t# lid 1 lmc 0 "SHARP"'
                    f" lid {lids[guid]} {speed}"
                ],
            )
        )
    for (host, rail), guid in adapters.items():
        unit, place = divmod(host, hosts_per_unit)
        far = leaf[unit, rail]
        blocks.append(
            _adapter(
                guid,
                host_name(host, rail),
                1,
                [
                    f'[1]({guid:x}) \t"S-{far:016x}"[{place + 1}]\t\t# lid {lids[guid]} lmc 0'
                    f' "{leaf_name(unit, rail)}" lid {lids[far]} {speed}'
                ],
            )
        )
    head = f"#\n# Topology file: generated on {DATE}\n#\n# Initiated from node {spine[0]:016x}\n"
    return head + "\n" + "\n".join(blocks)


def _adapter(guid: int, name: str, ports: int, links: list[str]) -> str:
    return "\n".join(
        [
            "vendid=0x2c9",
            "devid=0x1021",
            f"sysimgguid=0x{guid:x}",
            f"caguid=0x{guid:x}",
            f'Ca\t{ports} "H-{guid:016x}"\t\t# "{name}"',
            *links,
            "",
        ]
    )

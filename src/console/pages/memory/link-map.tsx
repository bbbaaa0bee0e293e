import { address, changeParams, go, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Failed, Waiting } from '../../parts/basics.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { Graph, MemoryItem } from '../../types.ts';

const WIDTH = 760;
const HEIGHT = 440;
/** Half axes of the ellipses on which the nodes of each hop stand, and the most nodes on each. */
const RINGS = [
  { x: 0, y: 0, most: 1 },
  { x: 165, y: 92, most: 10 },
  { x: 300, y: 182, most: 16 },
  { x: 350, y: 205, most: 16 },
] as const;
const LABEL_CHARACTERS = 22;
const HOPS = ['1', '2', '3'];

interface Node {
  /** `memory <id>` or `name <name>`. */
  readonly key: string;
  readonly href: string;
  readonly full: string;
  /** Sector of a memory, `name` of a name. */
  readonly kind: string;
  readonly size: number;
  readonly hop: number;
  readonly x: number;
  readonly y: number;
}

interface Joint {
  readonly from: string;
  readonly to: string;
  readonly weight: number;
  readonly type: string;
}

/** Shows the memories and names around a memory, ring by ring; a click walks on to one of them. */
export function LinkMap({ memory }: { memory: MemoryItem }) {
  const hops = address.value.params.get('hops') ?? '2';
  const { data, error, reload } = useLoad(`${memory.id} ${memory.version} ${hops}`, (signal) =>
    send<Graph>('GET', `/memory/${memory.id}/neighbourhood`, { query: { hops, limit: 60 }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  if (data.memories.length + data.entities.length < 2) return null;
  const { nodes, joints } = drawn(data, memory);
  const placeOf = new Map(nodes.map((node) => [node.key, node]));
  return (
    <figure class="card-flat stack-tight">
      <div class="between">
        <span class="small muted">{texts.memory.walk}</span>
        <Choice
          label={texts.memory.hops}
          value={hops}
          options={HOPS}
          onChange={(next) => changeParams({ hops: next === '2' ? '' : next }, { replace: true })}
        />
      </div>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={texts.memory.linkMap} class="plot">
        {joints.map(({ from, to, weight, type }) => {
          const [a, b] = [placeOf.get(from)!, placeOf.get(to)!];
          return (
            <line
              key={`${from} ${to} ${type}`}
              x1={a.x}
              y1={a.y}
              x2={b.x}
              y2={b.y}
              stroke="var(--line-strong)"
              stroke-opacity={0.7}
              stroke-width={0.5 + weight * 2.5}
              stroke-dasharray={type === 'contradicts' ? '4 4' : undefined}
            >
              <title>{type.replaceAll('_', ' ')}</title>
            </line>
          );
        })}
        {nodes.map((node) => (
          <MapNode key={node.key} node={node} />
        ))}
      </svg>
    </figure>
  );
}

function MapNode({ node: { href, full, kind, size, hop, x, y } }: { node: Node }) {
  const walk = (event: KeyboardEvent) => event.key === 'Enter' && go(href);
  const shape = (
    <g class={kind === 'name' ? undefined : `of-${kind}`}>
      <title>{full}</title>
      {kind === 'name' ? (
        <rect x={x - 5} y={y - 5} width="10" height="10" rx="2" fill="var(--ink-3)" />
      ) : (
        <circle cx={x} cy={y} r={size} fill="var(--of, var(--line-strong))" />
      )}
      {hop > 0 && (
        <text class="halo" x={x} y={y + (y < HEIGHT / 2 ? -size - 5 : size + 13)} text-anchor={anchorOf(x)}>
          {shortened(full)}
        </text>
      )}
    </g>
  );
  if (hop === 0) return shape;
  return (
    <a href={href} aria-label={full} onKeyDown={walk}>
      {shape}
    </a>
  );
}

/** Labels near the edges begin or end at their node, so that none is cut off. */
function anchorOf(x: number): 'start' | 'middle' | 'end' {
  if (x < 90) return 'start';
  return x > WIDTH - 90 ? 'end' : 'middle';
}

/** Places the nodes: those of a hop on their ellipse, in the order of what they are joined to further inside. */
function drawn(graph: Graph, memory: MemoryItem): { nodes: Node[]; joints: Joint[] } {
  const joints = jointsOf(graph);
  const places = new Map<string, Node & { readonly angle: number }>();
  const all = nodesOf(graph, memory);
  for (const [hop, ring] of RINGS.entries()) {
    const inward = (key: string) => {
      const joint = joints.find(({ from, to }) => (from === key && places.has(to)) || (to === key && places.has(from)));
      return joint && places.get(joint.from === key ? joint.to : joint.from);
    };
    const here = all
      .filter((node) => node.hop === hop)
      .map((node) => ({ node, at: inward(node.key)?.angle }))
      .filter(({ at }) => hop === 0 || at !== undefined)
      .sort((a, b) => b.node.size - a.node.size)
      .slice(0, ring.most)
      .sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
    here.forEach(({ node }, at) => {
      const angle = ((at + (hop % 2) / 2) / here.length) * 2 * Math.PI - Math.PI;
      const [x, y] = [WIDTH / 2 + Math.cos(angle) * ring.x, HEIGHT / 2 + Math.sin(angle) * ring.y];
      places.set(node.key, { ...node, x, y, angle });
    });
  }
  return { nodes: [...places.values()], joints: joints.filter(({ from, to }) => places.has(from) && places.has(to)) };
}

function nodesOf(graph: Graph, memory: MemoryItem): Node[] {
  const memories = graph.memories.map(({ id, gist, sector, salience, hop }): Node => ({
    key: `memory ${id}`,
    href: hrefOf(['memory', id], { tab: 'links' }),
    full: gist,
    kind: sector,
    size: hop === 0 ? 13 : 5 + salience * 5,
    hop,
    x: 0,
    y: 0,
  }));
  const names = graph.entities.map(({ name, label, hop }): Node => ({
    key: `name ${name}`,
    href: hrefOf(['name', name], { user_id: memory.user_id }),
    full: label,
    kind: 'name',
    size: 5,
    hop,
    x: 0,
    y: 0,
  }));
  return [...memories, ...names];
}

function jointsOf(graph: Graph): Joint[] {
  return [
    ...graph.links.map(({ src, dst, weight, type }) => ({ from: `memory ${src}`, to: `memory ${dst}`, weight, type })),
    ...graph.mentions.map(({ memory, entity }) => ({
      from: `memory ${memory}`,
      to: `name ${entity}`,
      weight: 0.2,
      type: 'mentions',
    })),
    ...graph.relations.map(({ src, dst, relation }) => ({
      from: `name ${src}`,
      to: `name ${dst}`,
      weight: 0.3,
      type: relation,
    })),
  ];
}

function shortened(text: string): string {
  return text.length > LABEL_CHARACTERS ? `${text.slice(0, LABEL_CHARACTERS - 1)}…` : text;
}

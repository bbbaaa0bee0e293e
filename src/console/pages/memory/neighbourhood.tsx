import { address, changeParams, go, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Failed, Waiting } from '../../parts/basics.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { Graph, MemoryItem } from '../../types.ts';

/** Size of a map and limits of its content, in units of its SVG. */
interface Paper {
  readonly width: number;
  readonly height: number;
  /** Half axes of the ellipse for the nodes of each hop, and the greatest number of nodes on it. */
  readonly rings: readonly { readonly x: number; readonly y: number; readonly most: number }[];
  /** Greatest number of characters of a label. */
  readonly characters: number;
}

const WIDE: Paper = {
  width: 760,
  height: 440,
  rings: [
    { x: 0, y: 0, most: 1 },
    { x: 165, y: 92, most: 10 },
    { x: 300, y: 182, most: 16 },
    { x: 350, y: 205, most: 16 },
  ],
  characters: 22,
};
/**
 * Size of a map on a narrow screen, such as a phone. It is taller than wide, so that labels are as large as on wide
 * screens.
 */
const NARROW: Paper = {
  width: 340,
  height: 480,
  rings: [
    { x: 0, y: 0, most: 1 },
    { x: 84, y: 100, most: 8 },
    { x: 130, y: 190, most: 12 },
    { x: 155, y: 225, most: 12 },
  ],
  characters: 16,
};
const TELEPHONE = '(width < 860px)';
/** Estimated width of one character of a label, in units of the map. `LINE` is the height of a label. */
const LETTER = 6;
const LINE = 14;
/** Smallest angle (radians) between neighbouring nodes of a ring, if the ring has room for it. */
const BESIDE = 0.5;
const HOPS = ['1', '2', '3'];

interface Node {
  /** Key of the node: `memory <id>` or `name <name>`. */
  readonly key: string;
  readonly href: string;
  readonly full: string;
  /** Sector of a memory, or `name` for a name. */
  readonly kind: string;
  readonly size: number;
  readonly hop: number;
  readonly x: number;
  readonly y: number;
  /** Label of the node with its position; undefined for the node in the middle, and if a label would overlap others. */
  readonly label?: Label | undefined;
}

interface Label {
  readonly text: string;
  readonly y: number;
  readonly anchor: 'start' | 'middle' | 'end';
}

interface Joint {
  readonly from: string;
  readonly to: string;
  readonly weight: number;
  readonly type: string;
}

/**
 * Shows the memories and names around a memory on rings, one for each hop (number of links between). A click on a node
 * opens it.
 */
export function Neighbourhood({ memory }: { memory: MemoryItem }) {
  const hops = address.value.params.get('hops') ?? '2';
  const { data, error, reload } = useLoad(`${memory.id} ${memory.version} ${hops}`, (signal) =>
    send<Graph>('GET', `/memory/${memory.id}/neighbourhood`, { query: { hops, limit: 60 }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  if (data.memories.length + data.entities.length < 2) return null;
  const paper = matchMedia(TELEPHONE).matches ? NARROW : WIDE;
  const { nodes, joints } = drawn(data, memory, paper);
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
      <svg viewBox={`0 0 ${paper.width} ${paper.height}`} role="group" aria-label={texts.memory.linkMap} class="plot">
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

function MapNode({ node: { href, full, kind, size, hop, x, y, label } }: { node: Node }) {
  const walk = (event: KeyboardEvent) => event.key === 'Enter' && go(href);
  const shape = (
    <g class={kind === 'name' ? undefined : `of-${kind}`}>
      <title>{full}</title>
      {kind === 'name' ? (
        <rect x={x - 5} y={y - 5} width="10" height="10" rx="2" fill="var(--ink-3)" />
      ) : (
        <circle cx={x} cy={y} r={size} fill="var(--of, var(--line-strong))" />
      )}
      {label !== undefined && (
        <text class="halo" x={x} y={label.y} text-anchor={label.anchor}>
          {label.text}
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

/**
 * Places the nodes of each hop on the ellipse of that hop: the nodes of the first hop at equal angles, and later ones
 * near a linked node of the hop before. It leaves out nodes without a link to a placed node, and the smallest nodes of
 * an ellipse that has more than its limit.
 */
function drawn(graph: Graph, memory: MemoryItem, paper: Paper): { nodes: Node[]; joints: Joint[] } {
  const joints = jointsOf(graph);
  const places = new Map<string, Node & { readonly angle: number }>();
  const all = nodesOf(graph, memory);
  for (const [hop, ring] of paper.rings.entries()) {
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
    const angles = hop < 2 ? evenly(here.length, hop) : near(here.map(({ at }) => at!));
    here.forEach(({ node }, at) => {
      const angle = angles[at]!;
      const [x, y] = [paper.width / 2 + Math.cos(angle) * ring.x, paper.height / 2 + Math.sin(angle) * ring.y];
      places.set(node.key, { ...node, x, y, angle });
    });
  }
  return {
    nodes: labelled([...places.values()], paper),
    joints: joints.filter(({ from, to }) => places.has(from) && places.has(to)),
  };
}

function evenly(number: number, hop: number): number[] {
  return Array.from({ length: number }, (_, at) => ((at + (hop % 2) / 2) / number) * 2 * Math.PI - Math.PI);
}

/**
 * Moves ascending angles (radians) apart by at least `BESIDE`, or by an equal share of the circle if there are more
 * than twelve, and then shifts all of them so that their mean does not change. If they do not fit into a full circle
 * that way, they are spread evenly over it.
 */
function near(wanted: readonly number[]): number[] {
  const least = Math.min(BESIDE, (2 * Math.PI) / wanted.length);
  const angles: number[] = [];
  for (const angle of wanted) angles.push(Math.max(angle, (angles.at(-1) ?? -Infinity) + least));
  // Too many for their places: the last would come to stand on the first.
  if (angles.length > 1 && angles.at(-1)! - angles[0]! > 2 * Math.PI - least) return evenly(wanted.length, 0);
  const late = angles.reduce((sum, angle, at) => sum + angle - wanted[at]!, 0) / Math.max(1, angles.length);
  return angles.map((angle) => angle - late);
}

/**
 * Adds a label above or below each node except the one in the middle, in the order of the nodes. If the label would
 * overlap an earlier label in both positions, the node gets none.
 */
function labelled(nodes: readonly Node[], paper: Paper): Node[] {
  const taken: { readonly left: number; readonly right: number; readonly y: number }[] = [];
  return nodes.map((node) => {
    if (node.hop === 0) return node;
    const text = shortened(node.full, paper.characters);
    const width = text.length * LETTER;
    const anchor = node.x < width / 2 ? 'start' : node.x > paper.width - width / 2 ? 'end' : 'middle';
    const left = node.x - { start: 0, middle: width / 2, end: width }[anchor];
    const [above, below] = [node.y - node.size - 5, node.y + node.size + 13];
    const y = (node.y < paper.height / 2 ? [above, below] : [below, above]).find(
      (place) => !taken.some((box) => left < box.right && left + width > box.left && Math.abs(box.y - place) < LINE),
    );
    if (y === undefined) return node;
    taken.push({ left, right: left + width, y });
    return { ...node, label: { text, y, anchor } };
  });
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

/**
 * Cuts a text that is longer than `characters` and adds `…`. It is cut after a word if a word ends in the second half
 * of that length.
 */
function shortened(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const end = text.lastIndexOf(' ', characters - 1);
  return `${text.slice(0, end > characters / 2 ? end : characters - 1)}…`;
}

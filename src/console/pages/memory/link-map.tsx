import { go, hrefOf } from '../../address.ts';
import { texts } from '../../texts.ts';
import type { LinkItem, MemoryItem } from '../../types.ts';

const WIDTH = 760;
const HEIGHT = 260;
/** Most neighbours on the map; the list below has all. */
const MAX_NODES = 16;
const LABEL_CHARACTERS = 26;

/** A link with the memory at its other end. */
export interface LinkedMemory {
  readonly link: LinkItem;
  /** undefined where it was not read, or is gone. */
  readonly memory: MemoryItem | undefined;
}

interface Node {
  readonly href: string;
  readonly label: string;
  readonly full: string;
  readonly kind: string;
  readonly weight: number;
  readonly type: string;
}

/** The memories and names around a memory, on a ring; a click walks on to one of them. */
export function LinkMap({ memory, links }: { memory: MemoryItem; links: readonly LinkedMemory[] }) {
  const nodes = nodesOf(memory, links);
  if (nodes.length === 0) return null;
  return (
    <figure class="card-flat">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={texts.memory.linkMap}>
        {nodes.map((node, at) => {
          const [x, y] = placeOf(at, nodes.length);
          return (
            <line
              key={`line ${node.href} ${node.type}`}
              x1={WIDTH / 2}
              y1={HEIGHT / 2}
              x2={x}
              y2={y}
              stroke="var(--line-strong)"
              stroke-width={0.5 + node.weight * 2.5}
              stroke-dasharray={node.type === 'contradicts' ? '4 4' : undefined}
            />
          );
        })}
        <circle cx={WIDTH / 2} cy={HEIGHT / 2} r="12" class={`of-${memory.primary_sector}`} fill="var(--of)" />
        {nodes.map((node, at) => (
          <MapNode key={`${node.href} ${node.type}`} node={node} place={placeOf(at, nodes.length)} />
        ))}
      </svg>
    </figure>
  );
}

function MapNode({ node, place: [x, y] }: { node: Node; place: readonly [number, number] }) {
  const isName = node.kind === 'name';
  const walk = (event: KeyboardEvent) => event.key === 'Enter' && go(node.href);
  return (
    <a href={node.href} aria-label={`${node.type}: ${node.full}`} onKeyDown={walk}>
      <g class={isName ? undefined : `of-${node.kind}`}>
        <title>{`${node.type}: ${node.full}`}</title>
        {isName ? (
          <rect x={x - 6} y={y - 6} width="12" height="12" rx="2" fill="var(--ink-3)" />
        ) : (
          <circle cx={x} cy={y} r="8" fill="var(--of, var(--line-strong))" />
        )}
        <text
          x={x}
          y={y + (y < HEIGHT / 2 ? -14 : 24)}
          text-anchor="middle"
          font-size="12"
          fill="var(--ink-2)"
          aria-hidden="true"
        >
          {node.label}
        </text>
      </g>
    </a>
  );
}

function placeOf(at: number, of: number): readonly [number, number] {
  const angle = (at / of) * 2 * Math.PI - Math.PI / 2 + (of % 2 === 0 ? Math.PI / of : 0);
  const near = of > 8 && at % 2 === 1 ? 0.62 : 1;
  return [WIDTH / 2 + Math.cos(angle) * 290 * near, HEIGHT / 2 + Math.sin(angle) * 88 * near];
}

function nodesOf(memory: MemoryItem, links: readonly LinkedMemory[]): Node[] {
  const memories = oneForEach(links).map(({ link, memory: other }): Node => {
    const full = other?.content.slice(0, 200) ?? link.id;
    return {
      href: hrefOf(['memory', link.id]),
      label: shortened(full),
      full,
      kind: other?.primary_sector ?? 'unknown',
      weight: link.weight,
      type: link.type,
    };
  });
  const names = memory.entities.map((name): Node => {
    const href = hrefOf(['name', name.toLowerCase()], { user_id: memory.user_id });
    return { href, label: shortened(name), full: name, kind: 'name', weight: 0.2, type: 'mentions' };
  });
  return [...memories.slice(0, MAX_NODES - Math.min(4, names.length)), ...names].slice(0, MAX_NODES);
}

/** Of several links to a memory the first is drawn, which has the highest weight. */
function oneForEach(links: readonly LinkedMemory[]): LinkedMemory[] {
  return [...new Map([...links].reverse().map((linked) => [linked.link.id, linked])).values()].reverse();
}

function shortened(text: string): string {
  return text.length > LABEL_CHARACTERS ? `${text.slice(0, LABEL_CHARACTERS - 1)}…` : text;
}

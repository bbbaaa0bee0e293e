import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { address, changeParams, go, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Empty, Failed, Field, MemoryLink, PageHead, SectorName, Waiting } from '../../parts/basics.tsx';
import { day } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { Graph as GraphData, NameList, Sector } from '../../types.ts';
import type { PictureLink, PictureNode } from './scene.ts';
import { drawGraph, type Picture } from './picture.ts';

const SECTORS: readonly Sector[] = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'];
const SIZES = ['100', '300', '1000', '2000'];
/** Number of memories that are listed below the map. */
const LISTED = 12;

/**
 * Page that shows a user's memories and names as a map. If no user is chosen, it shows the user with the most memories
 * among the first 100 users of the list.
 */
export function Graph() {
  const { params } = address.value;
  const bound = session.value?.caller?.user_id ?? null;
  const asked = bound ?? params.get('user_id');
  const limit = params.get('limit') ?? '300';
  const { data: users } = useLoad('users', (signal) =>
    send<NameList>('GET', '/users', { query: { limit: 100 }, signal }),
  );
  // If no user is chosen, the one with the most memories is shown.
  const user = asked ?? users?.items.toSorted((a, b) => b.memories - a.memories)[0]?.name;
  const { data, error, reload } = useLoad(user === undefined ? null : `${user} ${limit}`, (signal) =>
    send<GraphData>('GET', `/users/${encodeURIComponent(user!)}/graph`, { query: { limit }, signal }),
  );
  const isEmpty = users?.items.length === 0 || data?.memories.length === 0;
  return (
    <div class="page">
      <PageHead title={texts.graph.title} about={texts.graph.about} />
      <div class="fields" role="search">
        {bound === null && (
          <Field
            label={texts.fields.user}
            value={user ?? ''}
            list={users?.items.map(({ name }) => name)}
            onChange={(next) => changeParams({ user_id: next })}
          />
        )}
        <Choice
          label={texts.graph.size}
          value={limit}
          options={SIZES}
          onChange={(next) => changeParams({ limit: next })}
        />
      </div>
      {error !== undefined && <Failed error={error} retry={reload} />}
      {isEmpty && (
        <Empty title={texts.graph.emptyTitle}>
          <p>{texts.graph.empty}</p>
          <a class="button" href={hrefOf('browse')}>
            {texts.graph.toMemories}
          </a>
        </Empty>
      )}
      {!isEmpty && data === undefined && error === undefined && <Waiting />}
      {data !== undefined && data.memories.length > 0 && (
        <GraphMap key={`${user} ${limit}`} graph={data} user={user!} />
      )}
    </div>
  );
}

function GraphMap({ graph, user }: { graph: GraphData; user: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const picture = useRef<Picture | null>(null);
  const drawn = useMemo(() => pictureOf(graph, user), [graph]);
  const times = graph.memories.map(({ event_time: at }) => at);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const asked = Number(address.value.params.get('until') ?? last);
  const [until, setUntil] = useState(Math.min(last, Math.max(first, asked)));
  useEffect(() => {
    picture.current = drawGraph(canvas.current!, drawn, go);
    picture.current.showUntil(until);
    const themes = new MutationObserver(() => picture.current?.repaint());
    themes.observe(document.documentElement, { attributes: true });
    return () => {
      themes.disconnect();
      picture.current?.close();
    };
  }, [drawn]);
  const slide = (at: number) => {
    setUntil(at);
    picture.current?.showUntil(at);
  };
  return (
    <section class="stack">
      <div class="row">
        {SECTORS.map((sector) => (
          <SectorName key={sector} sector={sector} />
        ))}
        <span class="small muted">{texts.graph.names}</span>
        <span class="small muted number">{texts.graph.counts(graph.memories.length, graph.entities.length)}</span>
        {graph.truncated && <span class="chip">{texts.graph.truncated}</span>}
      </div>
      <canvas ref={canvas} class="canvas" tabIndex={0} role="img" aria-label={texts.graph.label} />
      <label class="row small">
        <span class="nowrap">{texts.graph.until(day(until))}</span>
        <input
          class="grow"
          type="range"
          min={first}
          max={last}
          step={Math.max(1, (last - first) / 400)}
          value={until}
          onInput={({ currentTarget }) => slide(Number(currentTarget.value))}
          onChange={({ currentTarget }) =>
            changeParams({ until: Number(currentTarget.value) === last ? '' : currentTarget.value }, { replace: true })
          }
        />
      </label>
      <MostSalient graph={graph} />
    </section>
  );
}

/** Shows the 12 most salient memories of the map as a list, for people who cannot see the map. */
function MostSalient({ graph }: { graph: GraphData }) {
  const most = graph.memories.toSorted((a, b) => b.salience - a.salience).slice(0, LISTED);
  return (
    <section class="card-flat stack-tight">
      <h2>{texts.graph.most}</h2>
      <ol class="stack-tight">
        {most.map(({ id, gist, sector }) => (
          <li key={id} class="row">
            <SectorName sector={sector} />
            <span class="line grow">
              <MemoryLink id={id}>
                <Line>{gist}</Line>
              </MemoryLink>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function pictureOf(graph: GraphData, user: string): { nodes: PictureNode[]; links: PictureLink[] } {
  const memories = graph.memories.map((memory): PictureNode => ({
    href: hrefOf(['memory', memory.id]),
    label: memory.gist,
    colour: memory.sector,
    radius: 3 + memory.salience * 8,
    at: memory.event_time,
    isName: false,
  }));
  const placeOf = new Map(graph.memories.map(({ id }, at) => [id, at]));
  const firstSeen = new Map<string, number>();
  for (const { memory, entity } of graph.mentions) {
    const at = graph.memories[placeOf.get(memory) ?? -1]?.event_time ?? Infinity;
    firstSeen.set(entity, Math.min(at, firstSeen.get(entity) ?? Infinity));
  }
  const names = graph.entities.map((entity): PictureNode => ({
    href: hrefOf(['name', entity.name], { user_id: user }),
    label: entity.label,
    colour: 'name',
    radius: 4,
    at: firstSeen.get(entity.name) ?? -Infinity,
    isName: true,
  }));
  const nameAt = new Map(graph.entities.map(({ name }, at) => [name, memories.length + at]));
  const joined = [
    ...graph.links.map(({ src, dst, weight }) => [placeOf.get(src), placeOf.get(dst), weight] as const),
    ...graph.mentions.map(({ memory, entity }) => [placeOf.get(memory), nameAt.get(entity), 0.3] as const),
    ...graph.relations.map(({ src, dst }) => [nameAt.get(src), nameAt.get(dst), 0.5] as const),
  ];
  const links = joined.flatMap(([source, target, weight]) =>
    source === undefined || target === undefined ? [] : [{ source, target, weight }],
  );
  return { nodes: [...memories, ...names], links };
}

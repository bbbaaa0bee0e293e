import type { ComponentChildren } from 'preact';
import { hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Meter, Time } from '../../parts/basics.tsx';
import { day, fixed } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { MemoryItem, RecallList } from '../../types.ts';
import { Fading } from './fading.tsx';

/** Number of latest answers containing the memory that are requested from the recall log. */
const RECALLS = 50;
/** Number of the latest answers containing the memory that are listed. */
const LISTED = 8;

/**
 * Shows the tab About of a memory: its provenance, its metadata, the latest answers that contained it, its salience
 * over time, and the names that it mentions.
 */
export function About({ memory }: { memory: MemoryItem }) {
  const recalls = useLoad(`recalls ${memory.id}`, (signal) =>
    send<RecallList>('GET', '/recalls', { query: { memory_id: memory.id, limit: RECALLS }, signal }).catch(() => null),
  );
  const items = recalls.data?.items ?? [];
  return (
    <div class="halves">
      <div class="stack">
        <section class="card-flat stack">
          <Provenance memory={memory} />
          {memory.namespace !== undefined && <Json title={texts.memory.value} value={memory.value} />}
          {Object.keys(memory.metadata).length > 0 && <Json title={texts.memory.metadata} value={memory.metadata} />}
        </section>
        <Recalls items={items} />
      </div>
      <section class="card-flat stack">
        <Standing memory={memory} />
        <Fading memory={memory} recalledAt={items.map(({ at }) => at)} />
        <Names memory={memory} />
      </section>
    </div>
  );
}

/** Shows the latest answers that contained the memory, at most eight, or a hint if there are none. */
function Recalls({ items }: { items: RecallList['items'] }) {
  return (
    <section class="card-flat stack-tight">
      <h2 class="minor">{texts.recalls.forMemory}</h2>
      {items.length === 0 && <p class="small muted">{texts.recalls.forMemoryNone}</p>}
      <ul class="stack-tight small">
        {items.slice(0, LISTED).map(({ recall_id: id, at, query }) => (
          <li key={id} class="between">
            <a class="line grow" href={hrefOf(['recall', id])}>
              {query === null ? texts.recalls.withheld : <Line>{query.slice(0, 160)}</Line>}
            </a>
            <span class="muted">
              <Time at={at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Provenance({ memory }: { memory: MemoryItem }) {
  const { user_id: user, session_id: session } = memory;
  const facts: [string, ComponentChildren][] = [
    [texts.memory.id, <code>{memory.id}</code>],
    [texts.memory.user, user === '' ? '–' : <a href={hrefOf('browse', { user_id: user })}>{user}</a>],
    [texts.memory.session, session || '–'],
    [texts.memory.added, <Time at={memory.created_at} />],
    [texts.memory.happened, <Time at={memory.event_time} />],
    [texts.memory.valid, validityOf(memory)],
    [texts.memory.expires, memory.expires_at === null ? texts.memory.never : <Time at={memory.expires_at} />],
    [texts.memory.written, memory.written_by ?? '–'],
    [texts.memory.type, memory.type ?? '–'],
    [texts.memory.external, memory.external_id ?? '–'],
    [texts.memory.version, String(memory.version)],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

function validityOf({ valid_from: from, valid_to: to }: MemoryItem): string {
  if (from === null && to === null) return texts.memory.always;
  return [
    from === null ? '' : `${texts.memory.from} ${day(from)}`,
    to === null ? '' : `${texts.memory.until} ${day(to)}`,
  ]
    .filter(Boolean)
    .join(' ');
}

function Standing({ memory }: { memory: MemoryItem }) {
  const { importance } = memory;
  return (
    <dl class="facts">
      <dt>{texts.memory.salience}</dt>
      <dd>
        <Meter value={memory.salience} name={texts.memory.salience} sector={memory.primary_sector} />{' '}
        <span class="muted">{texts.memory.fades(fixed(memory.decay_lambda, 3))}</span>
      </dd>
      <dt>{texts.memory.strength}</dt>
      <dd>
        <Meter value={memory.strength} name={texts.memory.strength} />
      </dd>
      <dt>{texts.memory.confidence}</dt>
      <dd class="number">{fixed(memory.confidence)}</dd>
      <dt>{texts.memory.importance}</dt>
      <dd class="number">{importance === null ? texts.memory.unstated : fixed(importance)}</dd>
      <dt>{texts.memory.recalls}</dt>
      <dd class="number">{memory.access_count}</dd>
      <dt>{texts.memory.lastSeen}</dt>
      <dd>
        <Time at={memory.last_seen_at} />
      </dd>
    </dl>
  );
}

function Names({ memory: { entities, user_id: user } }: { memory: MemoryItem }) {
  return (
    <div class="stack-tight">
      <h2 class="minor">{texts.memory.names}</h2>
      {entities.length === 0 && <p class="small muted">{texts.memory.noNames}</p>}
      <div class="row">
        {entities.map((name) => (
          <a key={name} class="chip" href={hrefOf(['name', name.toLowerCase()], { user_id: user })}>
            {name}
          </a>
        ))}
      </div>
    </div>
  );
}

function Json({ title, value }: { title: string; value: unknown }) {
  return (
    <div class="stack-tight">
      <h2 class="minor">{title}</h2>
      <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
    </div>
  );
}

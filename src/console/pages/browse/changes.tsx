import type { ComponentChildren } from 'preact';
import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Empty, Failed, Field, MemoryLink, Time, Waiting } from '../../parts/basics.tsx';
import { count, fixed } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { Diff } from '../../types.ts';

/** Number of days before today at which the period begins unless a start is chosen. */
const DAYS = 7;
const DAY_MS = 86_400_000;

type ListName = keyof typeof texts.changes.lists;
type Shown = Diff['added'][number]['memory'];

/**
 * Shows the memories that became known, were changed, replaced, contradicted, ended, faded or erased between two times.
 */
export function Changes() {
  const { params } = address.value;
  const from = params.get('from') ?? new Date(Date.now() - DAYS * DAY_MS).toISOString().slice(0, 10);
  const [to, topic, user] = ['to', 'topic', 'user_id'].map((name) => params.get(name) ?? undefined);
  const axis = params.get('axis') === 'valid' ? 'valid' : 'recorded';
  const query = { from, to: to === undefined ? undefined : endOf(to), axis, topic, user_id: user };
  const { data, error, reload } = useLoad(JSON.stringify(query), (signal) =>
    send<Diff>('GET', '/diff', { query, signal }),
  );
  return (
    <section class="stack" aria-label={texts.browse.tabs.changes}>
      <div class="fields" role="search">
        <Field
          label={texts.changes.from}
          type="date"
          value={from}
          onChange={(next) => changeParams({ from: next }, { replace: true })}
        />
        <Field
          label={texts.changes.to}
          type="date"
          value={to ?? ''}
          onChange={(next) => changeParams({ to: next }, { replace: true })}
        />
        <Choice
          label={texts.changes.axis}
          value={axis}
          onChange={(next) => changeParams({ axis: next === 'valid' ? next : '' }, { replace: true })}
          options={Object.entries(texts.changes.axes)}
        />
        {session.value?.caller?.user_id == null && (
          <Field label={texts.fields.user} value={user ?? ''} onChange={(next) => changeParams({ user_id: next })} />
        )}
        <Field label={texts.changes.topic} value={topic ?? ''} onChange={(next) => changeParams({ topic: next })} />
      </div>
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting />}
      {data !== undefined && <Lists diff={data} />}
    </section>
  );
}

/** Returns the last millisecond of a day in UTC, as Unix ms, since the period of the request includes its end. */
function endOf(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) + DAY_MS - 1;
}

function Lists({ diff }: { diff: Diff }) {
  const { counts, erased, degraded } = diff;
  const names = (Object.keys(texts.changes.lists) as ListName[]).filter((name) => counts[name] > 0);
  const lost = erased === null ? 0 : erased.deleted + erased.expired;
  return (
    <>
      {degraded && <p class="notice">{texts.changes.degraded}</p>}
      {names.length === 0 && lost === 0 && (
        <Empty title={texts.changes.none}>
          <p>{texts.changes.noneAbout}</p>
        </Empty>
      )}
      {names.map((name) => (
        <section key={name} class="stack-tight" aria-label={texts.changes.lists[name]}>
          <h2>
            {texts.changes.lists[name]} <span class="muted number">{count(counts[name])}</span>
          </h2>
          <ul class="stack-tight">{entriesOf(diff, name)}</ul>
          {diff[name].length < counts[name] && (
            <p class="muted small">{texts.changes.some(diff[name].length, counts[name])}</p>
          )}
        </section>
      ))}
      {erased !== null && lost > 0 && <p class="muted">{texts.changes.erased(erased.deleted, erased.expired)}</p>}
    </>
  );
}

function entriesOf(diff: Diff, name: ListName): ComponentChildren {
  switch (name) {
    case 'changed':
      return diff.changed.map(({ memory, at, before, fields }) => (
        <Entry key={memory.id} memory={memory} at={at} note={fields.join(', ')}>
          <Other label={texts.changes.before} memory={before} />
        </Entry>
      ));
    case 'superseded':
      return diff.superseded.map(({ memory, at, by }) => (
        <Entry key={memory.id} memory={memory} at={at}>
          {by === null ? texts.changes.successorGone : <Other label={texts.changes.now} memory={by} />}
        </Entry>
      ));
    case 'contradicted':
      return diff.contradicted.map(({ a, b, winner, at }) => (
        <Entry key={a.id + b.id} memory={a} at={at} note={winner === a.id ? texts.changes.right : ''}>
          <Other label={texts.changes.against} memory={b} />
          {winner === b.id && <span class="muted"> · {texts.changes.right}</span>}
        </Entry>
      ));
    case 'faded':
      return diff.faded.map(({ memory, salience_from: was, salience_to: is }) => (
        <Entry key={memory.id} memory={memory} note={texts.changes.salience(fixed(was), fixed(is))} />
      ));
    default:
      return diff[name].map(({ memory, at }) => <Entry key={memory.id} memory={memory} at={at} />);
  }
}

interface EntryProps {
  readonly memory: Shown;
  readonly at?: number;
  readonly note?: string;
  readonly children?: ComponentChildren;
}

function Entry({ memory, at, note = '', children }: EntryProps) {
  return (
    <li>
      <div class="line">
        <MemoryLink id={memory.id}>
          <Line>{memory.title || memory.content}</Line>
        </MemoryLink>
      </div>
      {children !== undefined && <div class="small">{children}</div>}
      <div class="small muted">
        {memory.user_id !== '' && `${memory.user_id} · `}
        {at !== undefined && <Time at={at} />}
        {note !== '' && `${at === undefined ? '' : ' · '}${note}`}
      </div>
    </li>
  );
}

/**
 * Shows, inside an entry, a second memory with a label: its earlier state, its successor, or the memory that
 * contradicts it.
 */
function Other({ label, memory }: { label: string; memory: Shown }) {
  return (
    <>
      <span class="muted">{label}</span>{' '}
      <MemoryLink id={memory.id}>
        <Line>{memory.title || memory.content}</Line>
      </MemoryLink>
    </>
  );
}

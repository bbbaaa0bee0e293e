import type { ComponentChildren } from 'preact';
import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, Field, MemoryLink, Time, Waiting } from '../../parts/basics.tsx';
import { fixed } from '../../parts/format.ts';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Words } from '../../parts/words.tsx';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { NearDuplicates, Proposals } from '../../types.ts';

/** Smallest similarity (0 to 1) of the listed pairs, unless the user chooses another. */
const LEAST = '0.9';

type Memory = Proposals['items'][number]['earlier'];

/** Shows proposed contradictions, up to 200 pairs, each with buttons to decide which memory is right. */
export function Contradictions() {
  const user = address.value.params.get('user_id') ?? undefined;
  const { data, error, reload } = useLoad(`contradictions ${user}`, (signal) =>
    send<Proposals>('GET', '/memory/contradictions', { query: { user_id: user, limit: 200 }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  if (data.items.length === 0) {
    return (
      <Empty title={texts.browse.noContradictions}>
        <p>{texts.browse.noContradictionsAbout}</p>
      </Empty>
    );
  }
  const decide = decideThen(reload);
  return (
    <section class="stack" aria-label={texts.browse.tabs.contradictions}>
      <p class="muted">{texts.browse.contradictionsAbout}</p>
      {data.items.map(({ user_id: owner, earlier, later, by }) => {
        const ends = { a: earlier.id, b: later.id };
        return (
          <Pair
            key={`${earlier.id} ${later.id}`}
            earlier={earlier}
            later={later}
            note={`${owner} ${by === 'form' ? texts.browse.byForm : texts.browse.byModel}`}
          >
            <Decision onDo={decide('POST', '/memory/contradict', { ...ends, winner: later.id })}>
              {texts.browse.laterRight}
            </Decision>
            <Decision onDo={decide('POST', '/memory/contradict', { ...ends, winner: earlier.id })}>
              {texts.browse.earlierRight}
            </Decision>
            <Decision onDo={decide('DELETE', '/memory/link', { src: earlier.id, dst: later.id, type: 'contradicts' })}>
              {texts.browse.bothHold}
            </Decision>
          </Pair>
        );
      })}
    </section>
  );
}

/** Shows pairs of memories that say nearly the same, each with buttons to decide which one is kept. */
export function Duplicates() {
  const { params } = address.value;
  const query = { user_id: params.get('user_id') ?? undefined, min_similarity: params.get('least') ?? LEAST };
  const { data, error, reload } = useLoad(JSON.stringify(query), (signal) =>
    send<NearDuplicates>('GET', '/memory/duplicates', { query, signal }),
  );
  const decide = decideThen(reload);
  return (
    <section class="stack" aria-label={texts.browse.tabs.duplicates}>
      <div class="fields" role="search">
        <Field
          label={texts.browse.leastSimilarity}
          type="number"
          min={0}
          max={1}
          step={0.01}
          value={query.min_similarity}
          onChange={(least) => changeParams({ least })}
        />
      </div>
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting />}
      {data?.items.length === 0 && (
        <Empty title={texts.browse.noDuplicates}>
          <p>{texts.browse.noDuplicatesAbout}</p>
        </Empty>
      )}
      {data !== undefined && data.items.length > 0 && <p class="muted">{texts.browse.duplicatesAbout}</p>}
      {data?.items.map(({ user_id: owner, earlier, later, similarity }) => (
        <Pair
          key={`${earlier.id} ${later.id}`}
          earlier={earlier}
          later={later}
          note={[owner, texts.browse.similar(fixed(similarity))].filter(Boolean).join(' · ')}
        >
          <Decision onDo={decide('POST', '/memory/supersede', { old_id: earlier.id, new_id: later.id })}>
            {texts.browse.keepLater}
          </Decision>
          <Decision onDo={decide('POST', '/memory/supersede', { old_id: later.id, new_id: earlier.id })}>
            {texts.browse.keepEarlier}
          </Decision>
        </Pair>
      ))}
    </section>
  );
}

/**
 * Makes a function that sends the user's decision about a pair, shows a message that it was made, and then calls
 * `then`.
 */
function decideThen(then: () => void) {
  return (method: string, path: string, body: object) => () =>
    void send(method, path, { body }).then(() => {
      say(texts.browse.decided);
      then();
    }, sayRefusal);
}

function Decision({ onDo, children }: { onDo: () => void; children: ComponentChildren }) {
  return (
    <button class="button button-small" onClick={onDo}>
      {children}
    </button>
  );
}

interface PairProps {
  readonly earlier: Memory;
  readonly later: Memory;
  readonly note: string;
  readonly children: ComponentChildren;
}

function Pair({ earlier, later, note, children }: PairProps) {
  return (
    <article class="card stack">
      <div class="pair">
        <Side name={texts.browse.earlier} memory={earlier} />
        <Side name={texts.browse.later} memory={later} />
      </div>
      <div class="between">
        {may('write') ? <div class="row">{children}</div> : <span />}
        <span class="small muted">{note}</span>
      </div>
    </article>
  );
}

function Side({ name, memory }: { name: string; memory: Memory }) {
  return (
    <div class="stack-tight">
      <div class="between small muted">
        <span>
          {name} · <Time at={memory.event_time} />
        </span>
        <MemoryLink id={memory.id}>{texts.open}</MemoryLink>
      </div>
      <Words isCut>{memory.content}</Words>
    </div>
  );
}

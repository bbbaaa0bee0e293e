import { useState } from 'preact/hooks';
import { go, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, MemoryLink, PageHead, Time, Waiting } from '../../parts/basics.tsx';
import { findMemory } from '../../parts/find-memory.ts';
import { fixed } from '../../parts/format.ts';
import { Remove } from '../../parts/entry-list.tsx';
import { useInterval, useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { MemoryItem, StandingAnswerItem, StandingItem } from '../../types.ts';
import { QUERIES } from './queries.tsx';

/** Number of latest answers that are listed. */
const LISTED = 50;
/** Time between two reloads (ms). */
const LOOK_MS = 3_000;

interface Answer extends StandingAnswerItem {
  /** The memory; undefined if it was erased. */
  readonly memory: MemoryItem | undefined;
}

/** Shows the page of one standing query with its latest 50 answers, reloaded every 3 seconds. */
export function OneQuery({ id }: { id: string }) {
  const [isRemoving, setRemoving] = useState(false);
  const { data, error, reload } = useLoad(id, (signal) => loadQuery(id, signal));
  useInterval(reload, LOOK_MS);
  if (error?.status === 404) return <Gone />;
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  const { query, answers } = data;
  return (
    <article class="page">
      <PageHead title={<Line>{query.query}</Line>} about={texts.standing.answers(query.answers)}>
        <a class="button" href={hrefOf('ask', { query: query.query, user_id: query.user_id })}>
          {texts.ask.action}
        </a>
        {may('write') && (
          <button class="button button-bad" onClick={() => setRemoving(true)}>
            {texts.remove}
          </button>
        )}
      </PageHead>
      <Facts query={query} />
      {answers.length === 0 && <p class="notice">{texts.standing.noAnswers}</p>}
      <ol class="stack-tight">
        {answers.map((answer) => (
          <li key={answer.memory_id} class="card-flat between">
            <span class="line grow">
              <AnswerName answer={answer} />
            </span>
            <span class="small muted number nowrap">
              {answer.score === null ? texts.standing.supersedes : fixed(answer.score)} · <Time at={answer.at} />
            </span>
          </li>
        ))}
      </ol>
      {isRemoving && (
        <Remove kind={QUERIES} item={query} onClose={() => setRemoving(false)} onDone={() => go(hrefOf('standing'))} />
      )}
    </article>
  );
}

async function loadQuery(id: string, signal: AbortSignal) {
  const path = `/standing/${encodeURIComponent(id)}`;
  const [query, { items }] = await Promise.all([
    send<StandingItem>('GET', path, { signal }),
    send<{ items: readonly StandingAnswerItem[] }>('GET', `${path}/answers`, { query: { l: LISTED }, signal }),
  ]);
  const answers = await Promise.all(
    items.map(async (answer): Promise<Answer> => ({ ...answer, memory: await findMemory(answer.memory_id, signal) })),
  );
  return { query, answers };
}

function AnswerName({ answer: { memory, memory_id: id } }: { answer: Answer }) {
  if (memory === undefined) return <span class="muted">{`${id} ${texts.standing.memoryGone}`}</span>;
  return (
    <MemoryLink id={id}>
      <Line>{memory.content}</Line>
    </MemoryLink>
  );
}

function Facts({ query }: { query: StandingItem }) {
  const hasFilters = Object.keys(query.filters).length > 0;
  return (
    <dl class="facts card-flat">
      <dt>{texts.fields.user}</dt>
      <dd>{query.user_id ?? texts.fields.anyone}</dd>
      <dt>{texts.fields.writtenBy}</dt>
      <dd>{query.written_by ?? '–'}</dd>
      <dt>{texts.standing.floor}</dt>
      <dd class="number">{query.min_score === null ? texts.standing.asDefault : fixed(query.min_score)}</dd>
      {hasFilters && (
        <>
          <dt>{texts.standing.filters}</dt>
          <dd>
            <code>{JSON.stringify(query.filters)}</code>
          </dd>
        </>
      )}
    </dl>
  );
}

function Gone() {
  return (
    <Empty title={texts.standing.gone}>
      <a class="button" href={hrefOf('standing')}>
        {texts.standing.all}
      </a>
    </Empty>
  );
}

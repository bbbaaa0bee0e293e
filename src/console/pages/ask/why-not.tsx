import { useState } from 'preact/hooks';
import { address, changeParams, go, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Failed, MemoryLink, Waiting } from '../../parts/basics.tsx';
import { duration, fixed } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { Answer, ExplanationItem, MatchItem } from '../../types.ts';
import { queryOf, withChanges } from './query-params.ts';

/** Shows a search for a memory that was expected, and why the answer does not contain it. */
export function WhyNot({ matches }: { matches: readonly MatchItem[] }) {
  const why = address.value.params.get('why');
  return (
    <aside class="card-flat stack" aria-label={texts.why.title}>
      <h2>{texts.why.title}</h2>
      <p class="small muted">{texts.why.about}</p>
      <Find matches={matches} />
      {why !== null && <Explanation key={why} id={why} />}
    </aside>
  );
}

const ID = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

function Find({ matches }: { matches: readonly MatchItem[] }) {
  const [text, setText] = useState('');
  const [wanted, setWanted] = useState('');
  const user = address.value.params.get('user_id') ?? undefined;
  const search = (event: Event) => {
    event.preventDefault();
    if (ID.test(text.trim())) changeParams({ why: text.trim() });
    else setWanted(text);
  };
  return (
    <>
      <form class="row" onSubmit={search}>
        <input
          class="input grow"
          aria-label={texts.why.find}
          placeholder={texts.why.placeholder}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <button class="button">{texts.why.search}</button>
      </form>
      {wanted.trim() !== '' && <Found text={wanted} user={user} returned={new Set(matches.map(({ id }) => id))} />}
    </>
  );
}

function Found({ text, user, returned }: { text: string; user: string | undefined; returned: ReadonlySet<string> }) {
  const body = { query: text, k: 8, min_score: 0, deep_recall: true, reinforce: false, collapse_similar: false };
  const { data, error } = useLoad(JSON.stringify([text, user]), (signal) =>
    send<Answer>('POST', '/memory/query', {
      body: { ...body, ...(user === undefined ? {} : { user_id: user }) },
      signal,
    }),
  );
  if (error !== undefined) return <Failed error={error} />;
  if (data === undefined) return <Waiting lines={1} />;
  if (data.matches.length === 0) return <p class="small">{texts.why.none}</p>;
  return (
    <ul class="stack-tight small">
      {data.matches.map(({ id, content }) => (
        <li key={id} class="row">
          <button class="button button-small" onClick={() => changeParams({ why: id })}>
            {texts.why.ask}
          </button>
          <span class="line grow">
            <Line>{content}</Line>
          </span>
          {returned.has(id) && <span class="chip chip-good">{texts.why.isIn}</span>}
        </li>
      ))}
    </ul>
  );
}

function Explanation({ id }: { id: string }) {
  const { params } = address.value;
  const query = queryOf(params);
  const { data, error, isLoading, reload } = useLoad(JSON.stringify([id, query]), (signal) =>
    send<ExplanationItem>('POST', '/explain', { body: { ...query, memory_id: id }, signal }),
  );
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return isLoading ? <Waiting lines={1} /> : null;
  return (
    <section class="stack" aria-live="polite">
      <div class={`notice ${data.outcome === 'returned' ? 'notice-good' : 'notice-warn'}`}>
        <b>{texts.why.outcomes[data.outcome] ?? data.outcome}</b>
      </div>
      <Facts explanation={data} />
      <Remedies explanation={data} />
    </section>
  );
}

function Facts({
  explanation: { memory_id: id, rank, score, terms, cosine, failed_filters: failed, superseded_by: by, trace },
}: {
  explanation: ExplanationItem;
}) {
  const facts: [string, string][] = [
    [texts.why.rank, rank === null ? texts.why.noCandidate : String(rank)],
    [texts.why.score, score === null ? '–' : fixed(score, 3)],
    [texts.why.matched, terms.matched.join(', ') || '–'],
    [texts.why.inContext, terms.in_context.join(', ') || '–'],
    [texts.why.missed, terms.missed.join(', ') || '–'],
    [texts.why.cosine, cosine === null ? '–' : fixed(cosine, 3)],
    [texts.why.failed, failed.join(', ') || '–'],
    [texts.why.took, duration(trace.reduce((sum, { ms }) => sum + ms, 0))],
  ];
  return (
    <dl class="facts">
      <dt>{texts.why.memory}</dt>
      <dd>
        <MemoryLink id={id} />
        {by !== null && (
          <>
            , {texts.why.supersededBy} <MemoryLink id={by} />
          </>
        )}
      </dd>
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd class="number">{value}</dd>
        </>
      ))}
    </dl>
  );
}

function Remedies({ explanation: { remedies, changes, outcome } }: { explanation: ExplanationItem }) {
  const { page, params } = address.value;
  if (outcome === 'returned') return null;
  const apply = () => go(hrefOf(page, withChanges(params, changes!)));
  return (
    <div class="stack-tight">
      <h3>{changes === null ? texts.why.noRemedy : texts.why.remedies}</h3>
      <ul class="stack-tight">
        {remedies.map((remedy) => (
          <li key={remedy}>{remedy}</li>
        ))}
      </ul>
      {changes !== null && Object.keys(changes).length > 0 && (
        <button class="button button-first" onClick={apply}>
          {texts.why.tryIt}
        </button>
      )}
    </div>
  );
}

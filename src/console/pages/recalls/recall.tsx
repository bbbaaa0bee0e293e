import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, MemoryLink, SectorName, Tabs, Time, Waiting } from '../../parts/basics.tsx';
import { count, fixed } from '../../parts/format.ts';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Line, Words } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { MatchItem, MemoryItem, Recall as RecallItem, Replay } from '../../types.ts';
import { Today } from './today.tsx';

const TABS = ['then', 'now'] as const;
const VERDICTS = ['used', 'useless', 'wrong'] as const;

/**
 * Shows the page of one logged answer: its query, its matches with feedback, and the answer to the same query today.
 */
export function RecallPage() {
  const id = address.value.rest[0] ?? '';
  return <OneRecall key={id} id={id} />;
}

function OneRecall({ id }: { id: string }) {
  const path = `/recalls/${encodeURIComponent(id)}`;
  const tab = address.value.params.get('tab') ?? 'then';
  const { data, error, reload } = useLoad(id, async (signal) => {
    const [recall, replay] = await Promise.all([
      send<RecallItem>('GET', path, { signal }),
      send<Replay>('POST', `${path}/replay`, { body: {}, signal }),
    ]);
    return { recall, replay };
  });
  if (error?.status === 404) return <Gone />;
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  return (
    <article class="page">
      <Head recall={data.recall} />
      <Tabs
        label={texts.recalls.views}
        value={tab}
        onChange={(next) => changeParams({ tab: next === 'then' ? '' : next }, { replace: true })}
        options={TABS.map((name) => [name, texts.recalls.tabs[name]])}
      />
      {tab === 'now' ? (
        <Today path={path} recall={data.recall} />
      ) : (
        <Then recall={data.recall} matches={data.replay.matches} path={path} onChange={reload} />
      )}
    </article>
  );
}

function Gone() {
  return (
    <Empty title={texts.recalls.gone}>
      <p>{texts.recalls.goneAbout}</p>
      <a class="button" href={hrefOf('recalls')}>
        {texts.recalls.all}
      </a>
    </Empty>
  );
}

function Head({ recall: { query, at, filters } }: { recall: RecallItem }) {
  const user = (filters as { readonly user_id?: string }).user_id;
  return (
    <header class="page-head">
      <div class="stack-tight grow">
        <h1>
          <bdi>{query === null ? texts.recalls.one : query.slice(0, 300)}</bdi>
        </h1>
        <p class="small">
          <Time at={at} />
          {query === null && ` · ${texts.recalls.withheld}`}
        </p>
      </div>
      <div class="row">
        <a class="button" href={hrefOf('recalls')}>
          {texts.recalls.all}
        </a>
        {query !== null && (
          <a class="button" href={hrefOf('ask', { query, user_id: user })}>
            {texts.recalls.askAgain}
          </a>
        )}
      </div>
    </header>
  );
}

interface ThenProps {
  readonly recall: RecallItem;
  readonly matches: readonly MatchItem[];
  readonly path: string;
  readonly onChange: () => void;
}

function Then({ recall, matches, path, onChange }: ThenProps) {
  return (
    <div class="columns">
      <section class="stack">
        {recall.missing.length > 0 && <p class="notice">{texts.recalls.missing(recall.missing.length)}</p>}
        {matches.length === 0 && <p class="muted">{texts.recalls.noMatches}</p>}
        <ol class="hits">
          {matches.map((match, at) => (
            <li key={match.id} class="card hit">
              <div class="between">
                <div class="row">
                  <span class="rank">{at + 1}</span>
                  <span class="score">{fixed(match.score)}</span>
                  <SectorName sector={match.sectors[0]!} />
                </div>
                <MemoryLink id={match.id}>{texts.open}</MemoryLink>
              </div>
              <Words isCut>{match.content}</Words>
              <Feedback recall={recall} id={match.id} path={path} onChange={onChange} />
            </li>
          ))}
        </ol>
      </section>
      <Facts recall={recall} />
    </div>
  );
}

interface FeedbackProps {
  readonly recall: RecallItem;
  readonly id: string;
  readonly path: string;
  readonly onChange: () => void;
}

function Feedback({ recall, id, path, onChange }: FeedbackProps) {
  const given = recall.feedback.find(({ memory_id: memory }) => memory === id)?.verdict;
  const give = (verdict: string) => () =>
    void send('POST', `${path}/feedback`, { body: { verdict, memory_ids: [id] } }).then(() => {
      say(texts.recalls.kept);
      onChange();
    }, sayRefusal);
  return (
    <div class="row small" role="group" aria-label={texts.recalls.feedback}>
      <span class="muted">{texts.recalls.feedback}</span>
      {VERDICTS.map((verdict) => (
        <button key={verdict} class="button button-small" aria-pressed={verdict === given} onClick={give(verdict)}>
          {texts.recalls.verdicts[verdict]}
        </button>
      ))}
    </div>
  );
}

function Facts({ recall }: { recall: RecallItem }) {
  const weights = Object.entries(recall.weights).map(([name, weight]) => `${name} ${fixed(weight)}`);
  const { scope } = recall.statistics;
  const facts: [string, string][] = [
    [texts.recalls.profile, [recall.profile, ...weights].join(', ')],
    [texts.recalls.model, recall.model === null ? texts.recalls.wordsOnly : recall.model.model],
    ...(scope === undefined ? [] : [[texts.recalls.searched, count(scope)] satisfies [string, string]]),
    [texts.recalls.confidence, fixed(recall.statistics.confidence)],
    [texts.recalls.version, recall.version],
  ];
  return (
    <aside class="card-flat stack" aria-label={texts.recalls.facts}>
      <h2>{texts.recalls.facts}</h2>
      <dl class="facts facts-wide">
        {facts.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd class="number">{value}</dd>
          </>
        ))}
      </dl>
      <h3>{texts.recalls.candidates}</h3>
      <dl class="facts facts-wide">
        {Object.entries(recall.outcomes).map(([outcome, number]) => (
          <>
            <dt>{outcome.replaceAll('_', ' ')}</dt>
            <dd class="number">{count(number)}</dd>
          </>
        ))}
      </dl>
      {recall.left_out.length > 0 && <LeftOut candidates={recall.left_out} />}
    </aside>
  );
}

/**
 * Shows the best candidates that were not matches, with their present text, or only their id if they cannot be read.
 */
function LeftOut({ candidates }: { candidates: RecallItem['left_out'] }) {
  const { data: gists } = useLoad(candidates.map(({ id }) => id).join(), (signal) =>
    Promise.all(
      candidates.map(({ id }) =>
        send<MemoryItem>('GET', `/memory/${id}`, { signal }).then(
          ({ gist }) => gist,
          () => undefined,
        ),
      ),
    ),
  );
  return (
    <>
      <h3>{texts.recalls.leftOut}</h3>
      <ul class="stack-tight small">
        {candidates.map(({ id, outcome, score }, at) => (
          <li key={id}>
            <div class="line">
              <MemoryLink id={id}>{gists?.[at] === undefined ? undefined : <Line>{gists[at]}</Line>}</MemoryLink>
            </div>
            <span class="number">{fixed(score)}</span>{' '}
            <span class="muted">{texts.why.outcomes[outcome] ?? outcome.replaceAll('_', ' ')}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, PageHead, Tabs, Waiting } from '../../parts/basics.tsx';
import { lazily } from '../../parts/lazily.tsx';
import { type Loaded, useLoad } from '../../parts/use-load.ts';
import { useTyped } from '../../parts/use-typed.ts';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { Answer, FederatedAnswer, MemoryList, QueryBody, RecallList } from '../../types.ts';
import { RecallTable } from '../recalls/recall-table.tsx';
import { AsCode, FederatedAsCode } from './as-code.tsx';
import { Compare } from './compare.tsx';
import { FederatedView } from './federated.tsx';
import { Hits } from './hits.tsx';
import { type FederatedBody, federatedOf, queryOf } from './query-params.ts';
import { Settings } from './settings.tsx';
import { AnswerNotes, Trace } from './trace.tsx';
import { WhyNot } from './why-not.tsx';

const AddMemory = lazily(async () => (await import('../browse/add-memory.tsx')).AddMemory);
/**
 * Number of times that the button “Ask” was pressed. It is part of the request's name, so that the same query is sent
 * again.
 */
const asked = signal(0);
/** Number of past answers that are listed before a query is entered. */
const RECENT = 8;
const TABS = ['hits', 'trace', 'compare', 'code'] as const;
type Tab = (typeof TABS)[number];

/** Page that sends a query as a client would, and shows the answer with everything that led to it. */
export function Ask() {
  const { params } = address.value;
  const query = queryOf(params);
  const federated = federatedOf(params);
  return (
    <div class="page">
      <PageHead title={texts.ask.title} about={texts.ask.about}>
        <a class="button" href={hrefOf('recalls', { user_id: params.get('user_id') })}>
          {texts.ask.past}
        </a>
      </PageHead>
      <Question />
      {query === undefined && <Start />}
      {query !== undefined && federated === undefined && <OfOne query={query} />}
      {federated !== undefined && <OfSeveral query={federated} />}
    </div>
  );
}

/** Shows the answer to a query that is sent to the present tenant only. */
function OfOne({ query }: { query: QueryBody }) {
  const loaded = useLoad(JSON.stringify([asked.value, query]), (signal) =>
    send<Answer>('POST', '/memory/query', { body: query, signal }),
  );
  const tab = TABS.find((name) => name === address.value.params.get('tab')) ?? 'hits';
  return (
    <>
      <AnswerTabs tabs={TABS} value={tab} />
      {tab === 'compare' && <Compare loaded={loaded} round={asked.value} />}
      {tab === 'code' && <AsCode query={query} />}
      {(tab === 'hits' || tab === 'trace') && <AnswerView loaded={loaded} tab={tab} />}
    </>
  );
}

/** Shows the merged answer of several tenants and servers. They do not send explanations of their scores. */
function OfSeveral({ query }: { query: FederatedBody }) {
  const loaded = useLoad(JSON.stringify([asked.value, query]), (signal) =>
    send<FederatedAnswer>('POST', '/federation/query', { body: query, signal }),
  );
  const isCode = address.value.params.get('tab') === 'code';
  return (
    <>
      <AnswerTabs tabs={['hits', 'code']} value={isCode ? 'code' : 'hits'} />
      {isCode ? <FederatedAsCode query={query} /> : <FederatedView loaded={loaded} />}
    </>
  );
}

function AnswerTabs({ tabs, value }: { tabs: readonly Tab[]; value: Tab }) {
  return (
    <Tabs
      label={texts.ask.views}
      value={value}
      onChange={(next) => changeParams({ tab: next === 'hits' ? '' : next }, { replace: true })}
      options={tabs.map((name) => [name, texts.ask.tabs[name]])}
    />
  );
}

/** Shows the view before a query is entered: the latest answers, or the first steps if the store is empty. */
function Start() {
  const { data } = useLoad('recent', (signal) =>
    send<RecallList>('GET', '/recalls', { query: { limit: RECENT }, signal }).catch(() => undefined),
  );
  const stored = useLoad('stored', (signal) =>
    send<MemoryList>('POST', '/memory/list', { body: { limit: 1 }, signal }).catch(() => undefined),
  );
  if (stored.data?.items.length === 0) return <Beginning onAdded={stored.reload} />;
  return (
    <>
      <Empty title={texts.ask.emptyTitle}>
        <p>{texts.ask.empty}</p>
      </Empty>
      {data !== undefined && data.items.length > 0 && (
        <section class="stack-tight">
          <h2>{texts.ask.recent}</h2>
          <RecallTable items={data.items} />
        </section>
      )}
    </>
  );
}

/** Shows the first steps in an empty store: buttons that add a memory or a document, for callers who may write. */
function Beginning({ onAdded }: { onAdded: () => void }) {
  const [isAdding, setAdding] = useState(false);
  const user = address.value.params.get('user_id') ?? '';
  return (
    <Empty title={texts.ask.beginTitle}>
      <p>{may('write') ? texts.ask.begin : texts.ask.beginReader}</p>
      {may('write') && (
        <div class="row">
          <button class="button button-first" onClick={() => setAdding(true)}>
            {texts.browse.add}
          </button>
          <a class="button" href={hrefOf('documents')}>
            {texts.ask.dropDocument}
          </a>
        </div>
      )}
      {isAdding && <AddMemory user={user} onClose={() => setAdding(false)} onDone={onAdded} />}
    </Empty>
  );
}

function Question() {
  const { params } = address.value;
  const [text, setText] = useTyped(params.get('query') ?? '');
  const ask = (event: Event) => {
    event.preventDefault();
    asked.value++;
    changeParams({ query: text, why: '' });
  };
  return (
    <form class="card stack" onSubmit={ask} role="search">
      <div class="row">
        <input
          class="input input-large grow"
          type="search"
          aria-label={texts.ask.question}
          placeholder={texts.ask.placeholder}
          maxLength={8192}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        <button class="button button-first input-large">{texts.ask.action}</button>
      </div>
      <Settings />
    </form>
  );
}

function AnswerView({ loaded: { data, error, isLoading, reload }, tab }: { loaded: Loaded<Answer>; tab: string }) {
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return isLoading ? <Waiting /> : null;
  if (tab === 'trace') return <Trace answer={data} />;
  return (
    <div class="columns">
      <section class="stack" aria-label={texts.ask.tabs.hits} aria-busy={isLoading}>
        <AnswerNotes answer={data} />
        <Hits matches={data.matches} />
      </section>
      <WhyNot matches={data.matches} />
    </div>
  );
}

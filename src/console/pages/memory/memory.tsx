import { useState } from 'preact/hooks';
import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, SectorName, Tabs, Time, Waiting } from '../../parts/basics.tsx';
import { Erased } from '../../parts/erased.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Line, Words } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { Deleted, MemoryItem } from '../../types.ts';
import { About } from './about.tsx';
import { Actions } from './actions.tsx';
import { HistoryView } from './history.tsx';
import { LinksView } from './links.tsx';
import { Around } from './around.tsx';

const TABS = ['about', 'history', 'links', 'time'] as const;

/** Shows the page of one memory: its text, its actions and four tabs. After an erasure it shows the receipt instead. */
export function MemoryPage() {
  const id = address.value.rest[0] ?? '';
  return <OneMemory key={id} id={id} />;
}

function OneMemory({ id }: { id: string }) {
  const [receipt, setReceipt] = useState<Deleted>();
  const { data, error, reload } = useLoad(receipt === undefined ? id : null, (signal) =>
    send<MemoryItem>('GET', `/memory/${encodeURIComponent(id)}`, { signal }),
  );
  if (receipt !== undefined) return <Receipt receipt={receipt} />;
  if (error?.status === 404) return <Gone />;
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  return (
    <article class="page">
      <Head memory={data} />
      <div class="card stack">
        <Words>{data.content}</Words>
        <Actions memory={data} onChange={reload} onForgotten={setReceipt} />
      </div>
      <Views memory={data} />
    </article>
  );
}

function Head({ memory }: { memory: MemoryItem }) {
  return (
    <header class="page-head">
      <div class="stack-tight grow">
        <h1>
          <Line>{memory.title === '' ? texts.memory.title : memory.title}</Line>
        </h1>
        <div class="row">
          {memory.sectors.map((sector) => (
            <SectorName key={sector} sector={sector} />
          ))}
          {memory.status !== 'active' && <span class="chip chip-warn">{memory.status}</span>}
          {memory.state !== 'ready' && <span class="chip">{memory.state}</span>}
          {memory.tags.map((tag) => (
            <span key={tag} class="chip">
              #{tag}
            </span>
          ))}
          <span class="small muted">
            <Time at={memory.event_time} />
          </span>
        </div>
      </div>
      <a
        class="button"
        href={hrefOf('ask', { query: memory.gist.slice(0, 200), user_id: memory.user_id, why: memory.id })}
      >
        {texts.memory.why}
      </a>
    </header>
  );
}

function Views({ memory }: { memory: MemoryItem }) {
  const tab = address.value.params.get('tab') ?? 'about';
  return (
    <>
      <Tabs
        label={texts.memory.views}
        value={tab}
        onChange={(next) => changeParams({ tab: next === 'about' ? '' : next }, { replace: true })}
        options={TABS.map((name) => [name, texts.memory.tabs[name]])}
      />
      {tab === 'about' && <About memory={memory} />}
      {tab === 'history' && <HistoryView memory={memory} />}
      {tab === 'links' && <LinksView memory={memory} />}
      {tab === 'time' && <Around memory={memory} />}
    </>
  );
}

function Gone() {
  return (
    <Empty title={texts.memory.gone}>
      <a class="button" href={hrefOf('browse')}>
        {texts.shell.names.browse}
      </a>
    </Empty>
  );
}

/** Shows the page after an erasure: what was erased with the memory. */
function Receipt({ receipt }: { receipt: Deleted }) {
  return (
    <section class="page" role="status">
      <h1>{texts.memory.forgotten}</h1>
      <Erased receipts={[receipt]} />
      <div>
        <a class="button" href={hrefOf('browse')}>
          {texts.shell.names.browse}
        </a>
      </div>
    </section>
  );
}

import { useState } from 'preact/hooks';
import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, PageHead, Tabs, Time, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { isBound, may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { EvalSummary } from '../../types.ts';
import { EditEval, shareOf } from './edit-eval.tsx';
import { Learned } from './learned.tsx';
import { OneEval } from './one-eval.tsx';

/** Page for admins with the evaluation sets and learned weights, or with the set that the address names. */
export function Evals() {
  const name = address.value.rest[0];
  if (!may('admin') || isBound()) return <Empty title={texts.admin.forAdmins} />;
  if (name !== undefined) return <OneEval key={name} name={name} />;
  const tab = address.value.params.get('tab') === 'learned' ? 'learned' : 'sets';
  return (
    <div class="page">
      <PageHead title={texts.evals.title} about={texts.evals.about} />
      <Tabs
        label={texts.evals.views}
        value={tab}
        onChange={(next) => changeParams({ tab: next === 'sets' ? '' : next }, { replace: true })}
        options={Object.entries(texts.evals.tabs)}
      />
      {tab === 'learned' ? <Learned /> : <AllEvals />}
    </div>
  );
}

function AllEvals() {
  const [isMaking, setMaking] = useState(false);
  const { data, error, reload } = useLoad('evals', (signal) =>
    send<{ items: readonly EvalSummary[] }>('GET', '/evals', { signal }),
  );
  return (
    <section class="stack">
      <div>
        <button class="button button-first" onClick={() => setMaking(true)}>
          {texts.evals.make}
        </button>
      </div>
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting lines={1} />}
      {data?.items.length === 0 && (
        <Empty title={texts.evals.emptyTitle}>
          <p>{texts.evals.empty}</p>
        </Empty>
      )}
      {data !== undefined && data.items.length > 0 && (
        <Table label={texts.evals.title} columns={texts.evals.columns}>
          {data.items.map((set) => (
            <SetRow key={set.name} set={set} />
          ))}
        </Table>
      )}
      {isMaking && <EditEval text={texts.evals.example} onClose={() => setMaking(false)} onDone={reload} />}
    </section>
  );
}

function SetRow({ set: { name, guard, items, last_run: last } }: { set: EvalSummary }) {
  return (
    <tr>
      <td>
        <a href={hrefOf(['evals', name])}>{name}</a>
      </td>
      <td class="right">{count(items)}</td>
      <td>{last === null ? texts.evals.never : <Time at={last.at} />}</td>
      <td class="right">{shareOf(last?.recall)}</td>
      <td class="right">{shareOf(last?.precision)}</td>
      <td class="right">{shareOf(last?.rightly_empty)}</td>
      <td>{guard && <span class="chip chip-good">{texts.evals.guards}</span>}</td>
    </tr>
  );
}

import { useState } from 'preact/hooks';
import { address, hrefOf } from '../../address.ts';
import { Refusal, send } from '../../client.ts';
import { Empty, Failed, PageHead, Time, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { count, fixed } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { say } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { isBound, may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { EvalSummary } from '../../types.ts';
import { TextArea } from '../memory/change-dialogs.tsx';
import { OneEval } from './one-eval.tsx';

/** Evaluation sets, or the one that the address names. */
export function Evals() {
  const name = address.value.rest[0];
  if (!may('admin') || isBound()) return <Empty title={texts.admin.forAdmins} />;
  return name === undefined ? <AllEvals /> : <OneEval key={name} name={name} />;
}

function AllEvals() {
  const [isMaking, setMaking] = useState(false);
  const { data, error, reload } = useLoad('evals', (signal) =>
    send<{ items: readonly EvalSummary[] }>('GET', '/evals', { signal }),
  );
  const make = (
    <button class="button button-first" onClick={() => setMaking(true)}>
      {texts.evals.make}
    </button>
  );
  return (
    <div class="page">
      <PageHead title={texts.evals.title} about={texts.evals.about}>
        {make}
      </PageHead>
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
    </div>
  );
}

/** A share of 0 to 1; a dash where nothing could be measured. */
export const shareOf = (value: number | null | undefined) => (value == null ? '–' : fixed(value));

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

/** Stores a set as JSON, in place of the one of its name. */
export function EditEval({ text: first, onClose, onDone }: { text: string; onClose: () => void; onDone: () => void }) {
  const [text, setText] = useState(first);
  const save = async () => {
    await send('POST', '/evals', { body: parsed(text) });
    say(texts.evals.saved);
    onDone();
  };
  return (
    <Dialog title={texts.evals.make} action={texts.save} onDo={save} onClose={onClose}>
      <TextArea label={texts.evals.json} value={text} onInput={setText} isCode />
    </Dialog>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal((error as Error).message, 0, 'invalid');
  }
}

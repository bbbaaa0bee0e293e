import { useState } from 'preact/hooks';
import { send } from '../../client.ts';
import { Empty, Failed, Time, Waiting } from '../../parts/basics.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { fixed, percent } from '../../parts/format.ts';
import { Table } from '../../parts/table.tsx';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { LearnedItem, Learning } from '../../types.ts';

const LOOKS: Readonly<Record<LearnedItem['state'], string>> = {
  proposed: 'chip-warn',
  accepted: 'chip-good',
  reverted: '',
};

/**
 * Shows weights that were learned from feedback, proposed or accepted, with their effect on the ranking, and a button
 * that learns new ones.
 */
export function Learned() {
  const [isLearning, setLearning] = useState(false);
  const [reason, setReason] = useState<string>();
  const { data, error, reload } = useLoad('learned', (signal) =>
    send<{ items: readonly LearnedItem[] }>('GET', '/learned', { signal }),
  );
  const learn = async () => {
    setLearning(true);
    try {
      setReason((await send<Learning>('POST', '/learned')).reason ?? undefined);
      reload();
    } catch (refusal) {
      sayRefusal(refusal);
    } finally {
      setLearning(false);
    }
  };
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting lines={1} />;
  return (
    <section class="stack">
      <div class="between">
        <p class="muted grow">{texts.learned.about}</p>
        <button class="button button-first" disabled={isLearning} onClick={() => void learn()}>
          {isLearning ? texts.learned.learning : texts.learned.learn}
        </button>
      </div>
      <div role="status">{reason !== undefined && <p class="notice">{texts.learned.none(reason)}</p>}</div>
      {data.items.length === 0 && (
        <Empty title={texts.learned.emptyTitle}>
          <p>{texts.learned.empty}</p>
        </Empty>
      )}
      {data.items.map((item) => (
        <OneLearned key={`${item.id} ${item.state}`} item={item} onChange={reload} />
      ))}
    </section>
  );
}

function OneLearned({ item, onChange }: { item: LearnedItem; onChange: () => void }) {
  const { state, report } = item;
  const step = state === 'proposed' ? 'accept' : state === 'accepted' ? 'revert' : undefined;
  const [isAsking, setAsking] = useState(false);
  return (
    <article class="card stack">
      <div class="between">
        <div class="row">
          <span class={`chip ${LOOKS[state]}`}>{texts.learned.states[state]}</span>
          <span class="muted">
            {texts.learned.from(report.learned_from, item.profile)} · <Time at={item.at} />
          </span>
        </div>
        {step !== undefined && (
          <button class={`button ${step === 'accept' ? 'button-first' : ''}`} onClick={() => setAsking(true)}>
            {texts.learned[step]}
          </button>
        )}
      </div>
      <div class="halves">
        <Weights item={item} />
        <Report report={report} />
      </div>
      {isAsking && step !== undefined && (
        <Ask item={item} step={step} onClose={() => setAsking(false)} onDone={onChange} />
      )}
    </article>
  );
}

function Weights({ item: { before, after } }: { item: LearnedItem }) {
  const rows: readonly (readonly [string, number | null | undefined, number])[] = [
    ...Object.entries(after.weights).map(([name, weight]) => [name, before.weights[name], weight] as const),
    ...(after.vector_weight === null
      ? []
      : [[texts.learned.vectors, before.vector_weight, after.vector_weight] as const]),
    [texts.learned.floor, before.min_score, after.min_score],
  ];
  return (
    <Table label={texts.learned.weights} columns={texts.learned.weightColumns}>
      {rows.map(([name, from, to]) => (
        <tr key={name}>
          <td>{name}</td>
          <td class="right">{from == null ? '–' : fixed(from)}</td>
          <td class="right">{from === to ? fixed(to) : <b>{fixed(to)}</b>}</td>
        </tr>
      ))}
    </Table>
  );
}

function Report({ report }: { report: LearnedItem['report'] }) {
  return (
    <div class="stack-tight">
      <Table label={texts.learned.report(report.held_out)} columns={texts.learned.reportColumns}>
        {(['order', 'wanted', 'unwanted'] as const).map((name) => (
          <tr key={name}>
            <td>{texts.learned.measures[name]}</td>
            <td class="right">{percent(report.before[name])}</td>
            <td class="right">{percent(report.after[name])}</td>
          </tr>
        ))}
      </Table>
      <p class="small muted">
        {texts.learned.report(report.held_out)}. {texts.learned.chance(`${fixed(report.chance * 100, 1)} %`)}
      </p>
    </div>
  );
}

interface AskProps {
  readonly item: LearnedItem;
  readonly step: 'accept' | 'revert';
  readonly onClose: () => void;
  readonly onDone: () => void;
}

function Ask({ item, step, onClose, onDone }: AskProps) {
  const words = {
    accept: [texts.learned.acceptTitle, texts.learned.acceptAbout, texts.learned.accepted],
    revert: [texts.learned.revertTitle, texts.learned.revertAbout, texts.learned.reverted],
  } as const;
  const [title, about, done] = words[step];
  const act = async () => {
    await send('POST', `/learned/${item.id}/${step}`);
    say(done);
    onDone();
  };
  return (
    <Dialog title={title} action={texts.learned[step]} onDo={act} onClose={onClose}>
      <p>{about}</p>
    </Dialog>
  );
}

import { changeParams, hrefOf } from '../../address.ts';
import { duration, fixed } from '../../parts/format.ts';
import { texts } from '../../texts.ts';
import type { Answer } from '../../types.ts';

/**
 * Shows notes on an answer: that it is degraded (incomplete), how many candidates scored below `min_score` (with a
 * button that asks again without it, if it was applied), and how many matches the option `cut` left out.
 */
export function AnswerNotes({ answer: { degraded, degraded_reasons: reasons = [], floor, cut } }: { answer: Answer }) {
  return (
    <>
      {degraded && <p class="notice notice-warn">{texts.ask.degraded(reasons)}</p>}
      {floor !== undefined && floor.below > 0 && (
        <div class="notice between">
          <span>{texts.ask.floor(floor.below, fixed(floor.min_score), floor.best_below)}</span>
          {floor.acted && (
            <button class="button button-small" onClick={() => changeParams({ min_score: 0 })}>
              {texts.ask.noFloor}
            </button>
          )}
        </div>
      )}
      {cut !== undefined && <p class="notice">{texts.ask.cut(cut.left_out, cut.mode)}</p>}
    </>
  );
}

/** Shows the stages of the query pipeline, with their durations and how many memories went in and came out. */
export function Trace({ answer: { trace = [], recall_id: recallId } }: { answer: Answer }) {
  const total = trace.reduce((sum, { ms }) => sum + ms, 0);
  return (
    <section class="stack">
      <p class="muted">{texts.ask.traceAbout(duration(total))}</p>
      <div class="table-wrap" tabIndex={0} role="region" aria-label={texts.ask.tabs.trace}>
        <table>
          <thead>
            <tr>
              <th>{texts.ask.stage}</th>
              <th class="right">{texts.ask.time}</th>
              <th>
                <span class="hidden">{texts.ask.share}</span>
              </th>
              <th class="right">{texts.ask.in}</th>
              <th class="right">{texts.ask.out}</th>
              <th>{texts.ask.note}</th>
            </tr>
          </thead>
          <tbody class="number">
            {trace.map((stage, at) => (
              <tr key={at}>
                <td>{stage.stage}</td>
                <td class="right nowrap">{duration(stage.ms)}</td>
                <td>
                  <span class="meter" aria-hidden="true">
                    <i style={{ width: `${total === 0 ? 0 : (stage.ms / total) * 100}%` }} />
                  </span>
                </td>
                <td class="right">{stage.in}</td>
                <td class="right">{stage.out}</td>
                <td class="muted">{stage.note}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="small muted">
        {texts.ask.recallId}{' '}
        <a class="mono" href={hrefOf(['recall', recallId])}>
          {recallId}
        </a>
      </p>
    </section>
  );
}

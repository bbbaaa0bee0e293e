import { duration, fixed } from '../../parts/format.ts';
import { texts } from '../../texts.ts';
import type { MemoryItem } from '../../types.ts';

const DAY_MS = 86_400_000;
const WIDTH = 360;
const HEIGHT = 110;
/** Smallest number of days into the future that the curve covers. */
const MIN_DAYS = 90;

/**
 * Shows the salience of a memory over time: its decay since `last_seen_at` (when it was last stored, recalled or
 * reinforced), and its future decay if it is not recalled. Times in `recalledAt` (Unix ms) are marked, up to a year
 * back.
 */
export function Fading({ memory, recalledAt }: { memory: MemoryItem; recalledAt: readonly number[] }) {
  const { salience, decay_lambda: lambda, last_seen_at: seen, primary_sector: sector } = memory;
  const now = Date.now();
  const daysAgo = (at: number) => (now - at) / DAY_MS;
  const past = Math.min(365, Math.max(0, daysAgo(seen), ...recalledAt.map(daysAgo)));
  // The salience before `last_seen_at` was another one, which is not known any more.
  const known = Math.min(past, Math.max(0, daysAgo(seen)));
  const ahead = Math.max(MIN_DAYS, past);
  const at = (days: number) => Math.min(1, salience * Math.exp(-lambda * days));
  const x = (days: number) => ((days + past) / (past + ahead)) * WIDTH;
  const y = (value: number) => HEIGHT - 4 - value * (HEIGHT - 14);
  const curve = (from: number, to: number) =>
    Array.from({ length: 41 }, (_, step) => from + ((to - from) * step) / 40)
      .map((days, step) => `${step === 0 ? 'M' : 'L'}${x(days).toFixed(1)} ${y(at(days)).toFixed(1)}`)
      .join('');
  const half = lambda === 0 ? texts.memory.never : duration((Math.LN2 / lambda) * DAY_MS);
  return (
    <figure class={`stack-tight of-${sector}`}>
      <h2 class="minor">{texts.memory.future}</h2>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={[salience, at(ahead)]
          .map((value) => fixed(value))
          .join(` → ${texts.memory.inDays(Math.round(ahead))} `)}
      >
        <line x1="0" x2={WIDTH} y1={y(0)} y2={y(0)} stroke="var(--line)" />
        <line x1="0" x2={WIDTH} y1={y(0.5)} y2={y(0.5)} stroke="var(--line)" stroke-dasharray="2 4" />
        <line x1={x(0)} x2={x(0)} y1="6" y2={y(0)} stroke="var(--line-strong)" stroke-dasharray="3 3" />
        {recalledAt
          .filter((at) => daysAgo(at) <= past)
          .map((at) => (
            <line
              key={at}
              x1={x(-daysAgo(at))}
              x2={x(-daysAgo(at))}
              y1={y(0) - 8}
              y2={y(0)}
              stroke="var(--ink-2)"
              stroke-width="2"
            />
          ))}
        {known > 0.5 && <path d={curve(-known, 0)} fill="none" stroke="var(--of)" stroke-width="2.5" />}
        <path d={curve(0, ahead)} fill="none" stroke="var(--of)" stroke-width="2" stroke-dasharray="5 4" />
        <circle cx={x(0)} cy={y(salience)} r="4.5" fill="var(--of)" />
      </svg>
      <figcaption class="small muted number">
        {fixed(salience)} {texts.memory.today} · {fixed(at(30))} {texts.memory.inDays(30)} · {fixed(at(90))}{' '}
        {texts.memory.inDays(90)} · {texts.memory.halves(half)}
        {recalledAt.length > 0 && ` · ${texts.memory.recalledLine}`}
      </figcaption>
    </figure>
  );
}

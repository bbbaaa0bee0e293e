import { fixed } from '../../parts/format.ts';
import { texts } from '../../texts.ts';
import type { MatchItem } from '../../types.ts';

type Explain = NonNullable<MatchItem['explain']>;

/** Difference from 1 from which a factor is worth showing. */
const LEAST_FACTOR = 0.005;

interface Part {
  readonly name: string;
  readonly weight: number | null;
  readonly feature: number;
  /** What it adds to the raw score. */
  readonly adds: number;
}

/** Takes the raw score of a profile apart; `src/engine/retrieve/score.ts` has the formulas. */
function partsOf({ profile, features, weights }: Pick<Explain, 'profile' | 'features' | 'weights'>): Part[] {
  const values = features as Readonly<Record<string, number>>;
  if (profile === 'composite' || profile === 'activation') {
    return Object.entries(weights as Readonly<Record<string, number>>).map(([name, weight]) => ({
      name,
      weight,
      feature: values[name] ?? 0,
      adds: weight * (values[name] ?? 0),
    }));
  }
  const name = profile === 'retention' ? 'similarity' : 'activation';
  return [{ name, weight: null, feature: values[name] ?? 0, adds: values[name] ?? 0 }];
}

/** Shows the score of a match as a bar that is made of its parts, with factors that came later beside it. */
export function ScoreBar({ score, explain }: { score: number; explain: Explain }) {
  const parts = partsOf(explain);
  const sum = parts.reduce((total, { adds }) => total + adds, 0);
  const words = parts.map(({ name, adds }) => `${name} ${fixed(adds)}`).join(', ');
  return (
    <div class="stack-tight">
      <div class="bar" role="img" aria-label={texts.ask.scoreOf(fixed(score), words)}>
        {parts.map(({ name, adds }) => (
          <i
            key={name}
            class={`of-${name}`}
            style={{ width: `${sum === 0 ? 0 : (adds / sum) * score * 100}%` }}
            title={`${name} ${fixed(adds, 3)}`}
          />
        ))}
      </div>
      <div class="legend number" aria-hidden="true">
        {parts.map(({ name, weight, feature, adds }) => (
          <span
            key={name}
            class={`of-${name}`}
            title={weight === null ? '' : `${fixed(weight)} × ${fixed(feature, 3)}`}
          >
            {name} {fixed(adds)}
          </span>
        ))}
      </div>
      <Factors explain={explain} />
    </div>
  );
}

function Factors({ explain }: { explain: Explain }) {
  const adjustments = explain.adjustments.filter(({ factor }) => Math.abs(factor - 1) >= LEAST_FACTOR);
  if (adjustments.length === 0) return null;
  return (
    <div class="row">
      {adjustments.map(({ by, factor }) => (
        <span key={by} class={`chip ${factor < 1 ? 'chip-warn' : 'chip-good'}`}>
          × {fixed(factor)} {texts.ask.factors[by] ?? by}
        </span>
      ))}
    </div>
  );
}

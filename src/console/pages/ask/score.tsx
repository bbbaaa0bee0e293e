import { fixed } from '../../parts/format.ts';
import { texts } from '../../texts.ts';
import type { MatchItem } from '../../types.ts';

type Explain = NonNullable<MatchItem['explain']>;

/** A factor whose difference from 1 is smaller than this is not shown. */
const LEAST_FACTOR = 0.005;

interface Part {
  readonly name: string;
  readonly weight: number | null;
  readonly feature: number;
  /** Amount that this part adds to the raw score. */
  readonly adds: number;
}

/**
 * Splits the raw score of a match into the amount that each feature adds. The formulas are in
 * `src/engine/retrieve/raw-score.ts`.
 */
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
  const { similarity = 0, retention = 0, activation = 0 } = values;
  if (profile === 'retention') {
    const { alpha = 0.3 } = weights as Readonly<Record<string, number>>;
    const weight = retention ** alpha;
    return [{ name: 'similarity', weight, feature: similarity, adds: weight * similarity }];
  }
  return [{ name: 'activation', weight: null, feature: activation, adds: activation }];
}

/**
 * Shows the score of a match as a bar divided into its parts, and below it the factors by which the raw score was
 * multiplied.
 */
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

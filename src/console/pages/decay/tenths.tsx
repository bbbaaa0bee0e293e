import { SectorName } from '../../parts/basics.tsx';
import { fixed, percent } from '../../parts/format.ts';
import { texts } from '../../texts.ts';
import type { DecayPreview } from '../../types.ts';

/** Shows the number of a sector's memories in each tenth of salience, today and at the date. */
export function Tenths({ sector, count, before, after }: DecayPreview['sectors'][number]) {
  const most = Math.max(1, ...before.tenths, ...after.tenths);
  const height = (value: number) => percent(value / most).replace(' ', '');
  return (
    <figure class={`stack-tight of-${sector}`}>
      <div class="between small">
        <SectorName sector={sector} />
        <span class="muted number">{texts.decay.counts(count)}</span>
      </div>
      <div
        class="tenths"
        role="img"
        aria-label={texts.decay.histogram(sector, before.tenths.join(', '), after.tenths.join(', '))}
      >
        {before.tenths.map((today, tenth) => (
          <span key={tenth} title={`${today} → ${after.tenths[tenth]}`}>
            {after.tenths[tenth]! > 0 && <i class="then" style={{ height: height(after.tenths[tenth]!) }} />}
            {today > 0 && <i class="now" style={{ height: height(today) }} />}
          </span>
        ))}
      </div>
      <figcaption class="small muted number">
        {texts.decay.average(fixed(before.average), fixed(after.average))}
      </figcaption>
    </figure>
  );
}

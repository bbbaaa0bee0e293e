import { useMemo } from 'preact/hooks';
import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, Field, Waiting } from '../../parts/basics.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { DecayPreview } from '../../types.ts';
import { Falls } from '../decay/falls.tsx';

const DAYS = 30;
const DAY_MS = 86_400_000;

/** Shows the memories that will be archived within 30 days unless they are recalled. */
export function FadingSoon() {
  const below = address.value.params.get('below');
  const at = useMemo(() => new Date(Date.now() + DAYS * DAY_MS).toISOString().slice(0, 10), []);
  const body = { at, ...(below === null ? {} : { archive_below: Number(below) }) };
  const { data, error, reload } = useLoad(JSON.stringify(body), (signal) =>
    send<DecayPreview>('POST', '/admin/decay/preview', { body, signal }),
  );
  return (
    <section class="stack" aria-label={texts.browse.tabs.fading}>
      <div class="fields" role="search">
        <Field
          label={texts.decay.archiveBelow}
          type="number"
          min={0}
          max={1}
          step={0.01}
          placeholder={texts.decay.asSet}
          value={below ?? ''}
          onChange={(next) => changeParams({ below: next })}
        />
      </div>
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting />}
      {data?.archived === 0 && (
        <Empty title={texts.browse.noFading}>
          <p>{texts.browse.noFadingAbout}</p>
        </Empty>
      )}
      {data !== undefined && data.archived > 0 && (
        <>
          <h2>{texts.decay.archived(data.archived)}</h2>
          <p class="muted">{texts.browse.fadingAbout}</p>
          <Falls title={texts.decay.lowest} falls={data.archives} />
          <div>
            <a class="button" href={hrefOf('decay', { at, below })}>
              {texts.browse.toDecay}
            </a>
          </div>
        </>
      )}
    </section>
  );
}

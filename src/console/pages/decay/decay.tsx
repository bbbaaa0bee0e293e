import { address, changeParams } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, Field, PageHead, Waiting } from '../../parts/basics.tsx';
import { day } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { isBound, may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { DecayPreview, SectorConfigs } from '../../types.ts';
import { Falls } from './falls.tsx';
import { Tenths } from './tenths.tsx';

const SECTORS = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'] as const;
const DAY_MS = 86_400_000;
/** Number of days ahead of the date that is shown unless another is chosen. */
const AHEAD = 90;

/**
 * Page for admins that previews the salience (0 to 1) of memories at a date under other rates of decay, before these
 * are set.
 */
export function Decay() {
  if (!may('admin') || isBound()) return <Empty title={texts.admin.forAdmins} />;
  const body = assumptionsOf(address.value.params);
  const preview = useLoad(JSON.stringify(body), (signal) =>
    send<DecayPreview>('POST', '/admin/decay/preview', { body, signal }),
  );
  const sectors = useLoad('sectors', (signal) => send<{ configs: SectorConfigs }>('GET', '/sectors', { signal }));
  const { data, error, reload } = preview;
  return (
    <div class="page">
      <PageHead title={texts.decay.title} about={texts.decay.about} />
      <Assumptions configs={sectors.data?.configs} />
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && <Waiting />}
      {data?.sectors.length === 0 && (
        <Empty title={texts.decay.emptyTitle}>
          <p>{texts.decay.empty}</p>
        </Empty>
      )}
      {data !== undefined && data.sectors.length > 0 && <Preview preview={data} />}
    </div>
  );
}

interface Assumed {
  readonly at: string;
  readonly lambda?: number | Readonly<Record<string, number>>;
  readonly archive_below?: number;
}

function assumptionsOf(params: URLSearchParams): Assumed {
  const at = params.get('at') ?? new Date(Date.now() + AHEAD * DAY_MS).toISOString().slice(0, 10);
  const bySector = SECTORS.flatMap((sector): [string, number][] => {
    const rate = params.get(`lambda.${sector}`);
    return rate === null ? [] : [[sector, Number(rate)]];
  });
  const all = params.get('lambda');
  const below = params.get('below');
  return {
    at,
    ...(bySector.length > 0 ? { lambda: withOthers(bySector, all) } : all === null ? {} : { lambda: Number(all) }),
    ...(below === null ? {} : { archive_below: Number(below) }),
  };
}

/**
 * Returns the assumed rate of decay by sector. `bySector` has the rates of single sectors; `all` is the rate for all
 * other sectors, null if it is not assumed.
 */
function withOthers(bySector: readonly [string, number][], all: string | null): Record<string, number> {
  const others = all === null ? [] : SECTORS.map((sector): [string, number] => [sector, Number(all)]);
  return Object.fromEntries([...others, ...bySector]);
}

function Assumptions({ configs }: { configs: SectorConfigs | undefined }) {
  const { params } = address.value;
  const rate = (name: string, label: string, placeholder: string) => (
    <Field
      key={name}
      label={label}
      type="number"
      min={0}
      max={10}
      step={0.001}
      placeholder={placeholder}
      value={params.get(name) ?? ''}
      onChange={(value) => changeParams({ [name]: value }, { replace: true })}
    />
  );
  return (
    <div class="card stack">
      <div class="fields">
        <Field
          label={texts.decay.at}
          type="date"
          value={assumptionsOf(params).at}
          onChange={(at) => changeParams({ at }, { replace: true })}
        />
        {rate('lambda', texts.decay.lambda, texts.decay.asSet)}
        {SECTORS.map((sector) =>
          rate(`lambda.${sector}`, texts.decay.lambdaOf(sector), String(configs?.[sector].decay_lambda ?? '')),
        )}
        {rate('below', texts.decay.archiveBelow, texts.decay.asSet)}
      </div>
    </div>
  );
}

function Preview({ preview }: { preview: DecayPreview }) {
  return (
    <>
      {preview.degraded && <p class="notice notice-warn">{texts.decay.cut}</p>}
      <section class="card-flat stack" aria-label={day(preview.at)}>
        <h2>{day(preview.at)}</h2>
        <div class="halves">
          {preview.sectors.map((sector) => (
            <Tenths key={sector.sector} {...sector} />
          ))}
        </div>
        <p class="small muted">{texts.decay.legend}</p>
      </section>
      <section class="stack-tight">
        <h2>{preview.archived === 0 ? texts.decay.archivedNone : texts.decay.archived(preview.archived)}</h2>
        <p class="muted">{texts.decay.archiveHint}</p>
        {preview.archives.length > 0 && <Falls title={texts.decay.lowest} falls={preview.archives} />}
      </section>
      {preview.falls.length > 0 && (
        <section class="stack-tight">
          <h2>{texts.decay.falls}</h2>
          <Falls title={texts.decay.falls} falls={preview.falls} />
        </section>
      )}
      <ToSet />
    </>
  );
}

/**
 * Shows the environment variables that would apply the assumed rates and the assumed threshold for archiving; nothing
 * if none are assumed.
 */
function ToSet() {
  const { params } = address.value;
  const lines = [
    ['OM_DECAY_LAMBDA', params.get('lambda')],
    ['OM_ARCHIVE_BELOW', params.get('below')],
  ].filter(([, value]) => value !== null);
  const hasSectors = SECTORS.some((sector) => params.has(`lambda.${sector}`));
  if (lines.length === 0 && !hasSectors) return null;
  return (
    <section class="card-flat stack-tight">
      <h2>{texts.decay.toSet}</h2>
      {lines.length > 0 && (
        <>
          <p class="muted">{texts.decay.toSetAbout}</p>
          <pre tabIndex={0}>{lines.map(([name, value]) => `${name}=${value}`).join('\n')}</pre>
        </>
      )}
      {hasSectors && <p class="muted">{texts.decay.toSetSectors}</p>}
    </section>
  );
}

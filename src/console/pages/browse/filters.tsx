import { address, changeParams } from '../../address.ts';
import { Choice, Field } from '../../parts/basics.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';

const SECTORS = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'];
const STATUSES = ['active', 'superseded', 'contradicted', 'archived'];
/** Filters that are lists of words. */
const LISTS = [
  'tags',
  'types',
  'users',
  'sessions',
  'sectors',
  'statuses',
  'external_ids',
  'written_by',
  'documents',
  'files',
] as const;
/** Ranges of time; `event_time.from` is the parameter of a beginning. */
const RANGES = ['event_time', 'created_at'] as const;
/** Filters that are seldom needed; they are shown where one is set, or where somebody asks for them. */
const SELDOM =
  /^(types|external_ids|written_by|documents|files|namespace|min_salience|metadata|event_time\.\w+|order|direction)$/;

/** Makes the body of `POST /memory/list` from an address. */
export function listBodyOf(params: URLSearchParams): Record<string, unknown> {
  const filters: Record<string, unknown> = {};
  for (const name of LISTS) {
    const words = (params.get(name) ?? '').split(',').map((word) => word.trim());
    if (words.some(Boolean)) filters[name] = words.filter(Boolean);
  }
  for (const name of RANGES) {
    const [from, to] = [params.get(`${name}.from`), params.get(`${name}.to`)];
    if (from !== null || to !== null)
      filters[name] = { ...(from === null ? {} : { from }), ...(to === null ? {} : { to }) };
  }
  const metadata = params.get('metadata');
  if (metadata) filters['metadata'] = parsed(metadata);
  const salience = params.get('min_salience');
  if (salience) filters['min_salience'] = Number(salience);
  const namespace = params.get('namespace');
  if (namespace !== null) filters['namespace'] = namespace === ANY_NAMESPACE ? '' : namespace;
  const user = params.get('user_id');
  return {
    ...(user === null ? {} : { user_id: user }),
    ...(Object.keys(filters).length === 0 ? {} : { filters }),
    ...(params.get('order') === 'event_time' ? { order_by: 'event_time' } : {}),
    ...(params.get('direction') === 'asc' ? { order: 'asc' } : {}),
  };
}

/** What stands in the address for items of any namespace, as a parameter cannot be empty. */
const ANY_NAMESPACE = '*';

/** What is no JSON goes to the service as it is, which says what it expects. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const value = (name: string) => address.value.params.get(name) ?? '';
const set = (name: string) => (next: string) => changeParams({ [name]: next });

/** Shows the filters of the list of memories. */
export function Filters() {
  const isSeldom = [...address.value.params.keys()].some((name) => SELDOM.test(name));
  return (
    <div class="stack-tight" role="search">
      <div class="fields">
        {session.value?.caller?.user_id == null && (
          <Field
            label={texts.fields.user}
            placeholder={texts.fields.anyone}
            value={value('user_id')}
            onChange={set('user_id')}
          />
        )}
        <Choice
          label={texts.fields.sector}
          value={value('sectors')}
          onChange={set('sectors')}
          options={[['', texts.fields.all], ...SECTORS]}
        />
        <Choice
          label={texts.fields.status}
          value={value('statuses') || 'active'}
          onChange={(next) => changeParams({ statuses: next === 'active' ? '' : next })}
          options={STATUSES}
        />
        <Words name="tags" label={texts.fields.tags} />
        <Words name="sessions" label={texts.fields.session} />
        <Day name="created_at.from" label={texts.browse.from} />
        <Day name="created_at.to" label={texts.browse.to} />
      </div>
      <details open={isSeldom}>
        <summary>{texts.browse.moreFilters}</summary>
        <SeldomFilters />
      </details>
    </div>
  );
}

function SeldomFilters() {
  return (
    <div class="fields">
      <Words name="types" label={texts.fields.types} />
      <Words name="external_ids" label={texts.browse.externalId} />
      <Words name="written_by" label={texts.fields.writtenBy} />
      <Words name="documents" label={texts.browse.documents} />
      <Words name="files" label={texts.browse.files} />
      <Field
        label={texts.browse.namespace}
        placeholder={texts.browse.anyNamespace}
        value={value('namespace')}
        onChange={set('namespace')}
      />
      <Field
        label={texts.browse.leastSalience}
        type="number"
        min={0}
        max={1}
        step={0.05}
        value={value('min_salience')}
        onChange={set('min_salience')}
      />
      <Field
        label={texts.fields.metadata}
        placeholder='{"team": "platform"}'
        value={value('metadata')}
        onChange={set('metadata')}
      />
      <Day name="event_time.from" label={texts.browse.happenedFrom} />
      <Day name="event_time.to" label={texts.browse.happenedTo} />
      <Choice
        label={texts.browse.order}
        value={value('order') || 'id'}
        onChange={(next) => changeParams({ order: next === 'id' ? '' : next })}
        options={Object.entries(texts.browse.orders)}
      />
      <Choice
        label={texts.browse.direction}
        value={value('direction') || 'desc'}
        onChange={(next) => changeParams({ direction: next === 'desc' ? '' : next })}
        options={Object.entries(texts.browse.directions)}
      />
    </div>
  );
}

function Words({ name, label }: { name: string; label: string }) {
  return <Field label={label} placeholder={texts.fields.commas} value={value(name)} onChange={set(name)} />;
}

function Day({ name, label }: { name: string; label: string }) {
  return <Field label={label} type="date" value={value(name)} onChange={set(name)} />;
}

import type { ComponentProps } from 'preact';
import { address, changeParams } from '../../address.ts';
import { Choice, Field } from '../../parts/basics.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';

const SECTORS = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'];
const STATUSES = ['active', 'superseded', 'contradicted', 'archived'];
/** Filters whose value is a list of words. */
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
/** Filters whose value is a range of time. Its bounds are two parameters, such as `event_time.from`. */
const RANGES = ['event_time', 'created_at'] as const;
/** Matches filters that are seldom needed. They are shown if one of them is set, or when the user opens them. */
const SELDOM =
  /^(types|external_ids|written_by|documents|files|namespace|min_salience|metadata|event_time\.\w+|order|direction)$/;

/** Makes the body of `POST /memory/list` from an address. Parameters that are not set are left out. */
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

/** Value of the parameter `namespace` for items of any namespace, since a parameter cannot be empty. */
const ANY_NAMESPACE = '*';

/** Parses JSON. A text that is not JSON is returned as it is, and the service then says what it expects. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Shows the filters of the list of memories. */
export function Filters() {
  const isSeldom = [...address.value.params.keys()].some((name) => SELDOM.test(name));
  return (
    <div class="stack-tight" role="search">
      <div class="fields">
        {session.value?.caller?.user_id == null && (
          <Entry name="user_id" label={texts.fields.user} placeholder={texts.fields.anyone} />
        )}
        <Pick name="sectors" label={texts.fields.sector} usual="" options={[['', texts.fields.all], ...SECTORS]} />
        <Pick name="statuses" label={texts.fields.status} usual="active" options={STATUSES} />
        <Entry name="tags" label={texts.fields.tags} placeholder={texts.fields.commas} />
        <Entry name="sessions" label={texts.fields.session} placeholder={texts.fields.commas} />
        <Entry name="created_at.from" label={texts.browse.from} type="date" />
        <Entry name="created_at.to" label={texts.browse.to} type="date" />
      </div>
      <details open={isSeldom}>
        <summary>{texts.browse.moreFilters}</summary>
        <SeldomFilters />
      </details>
    </div>
  );
}

function SeldomFilters() {
  const { browse, fields } = texts;
  return (
    <div class="fields">
      <Entry name="types" label={fields.types} placeholder={fields.commas} />
      <Entry name="external_ids" label={browse.externalId} placeholder={fields.commas} />
      <Entry name="written_by" label={fields.writtenBy} placeholder={fields.commas} />
      <Entry name="documents" label={browse.documents} placeholder={fields.commas} />
      <Entry name="files" label={browse.files} placeholder={fields.commas} />
      <Entry name="namespace" label={browse.namespace} placeholder={browse.anyNamespace} />
      <Entry name="min_salience" label={browse.leastSalience} type="number" min={0} max={1} step={0.05} />
      <Entry name="metadata" label={fields.metadata} placeholder='{"team": "platform"}' />
      <Entry name="event_time.from" label={browse.happenedFrom} type="date" />
      <Entry name="event_time.to" label={browse.happenedTo} type="date" />
      <Pick name="order" label={browse.order} usual="id" options={Object.entries(browse.orders)} />
      <Pick name="direction" label={browse.direction} usual="desc" options={Object.entries(browse.directions)} />
    </div>
  );
}

/** Shows an input for one parameter of the address. */
function Entry({ name, ...field }: { name: string } & Omit<ComponentProps<typeof Field>, 'value' | 'onChange'>) {
  return (
    <Field
      {...field}
      value={address.value.params.get(name) ?? ''}
      onChange={(value) => changeParams({ [name]: value })}
    />
  );
}

interface PickProps {
  readonly name: string;
  readonly label: string;
  /** The value that applies if the address has none. */
  readonly usual: string;
  readonly options: ComponentProps<typeof Choice>['options'];
}

/** Shows a choice for one parameter of the address. */
function Pick({ name, label, usual, options }: PickProps) {
  return (
    <Choice
      label={label}
      value={address.value.params.get(name) ?? usual}
      options={options}
      onChange={(value) => changeParams({ [name]: value === usual ? '' : value })}
    />
  );
}

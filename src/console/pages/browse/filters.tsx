import { address, changeParams } from '../../address.ts';
import { Choice, Field } from '../../parts/basics.tsx';
import { session } from '../../session.ts';
import { texts } from '../../texts.ts';

const SECTORS = ['episodic', 'semantic', 'procedural', 'emotional', 'reflective'];
const STATUSES = ['active', 'superseded', 'contradicted', 'archived'];
/** Filters that are lists of words. */
const LISTS = ['tags', 'types', 'sessions', 'sectors', 'statuses', 'external_ids', 'written_by', 'documents'] as const;

/** Makes the body of `POST /memory/list` from an address. */
export function listBodyOf(params: URLSearchParams): Record<string, unknown> {
  const filters: Record<string, unknown> = {};
  for (const name of LISTS) {
    const words = (params.get(name) ?? '').split(',').map((word) => word.trim());
    if (words.some(Boolean)) filters[name] = words.filter(Boolean);
  }
  const metadata = params.get('metadata');
  if (metadata) filters['metadata'] = parsed(metadata);
  const user = params.get('user_id');
  const from = params.get('from');
  const to = params.get('to');
  return {
    ...(user === null ? {} : { user_id: user }),
    ...(Object.keys(filters).length === 0 ? {} : { filters }),
    ...(from === null ? {} : { startTime: from }),
    ...(to === null ? {} : { endTime: to }),
    ...(params.get('order') === 'event_time' ? { order_by: 'event_time' } : {}),
  };
}

/** What is no JSON goes to the service as it is, which says what it expects. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Shows the filters of the list of memories. */
export function Filters() {
  const { params } = address.value;
  const value = (name: string) => params.get(name) ?? '';
  const set = (name: string) => (next: string) => changeParams({ [name]: next });
  const words = (name: string, label: string) => (
    <Field label={label} placeholder={texts.fields.commas} value={value(name)} onChange={set(name)} />
  );
  return (
    <div class="fields" role="search">
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
      {words('tags', texts.fields.tags)}
      {words('types', texts.fields.types)}
      {words('sessions', texts.fields.session)}
      {words('external_ids', texts.browse.externalId)}
      {words('written_by', texts.fields.writtenBy)}
      <Field label={texts.browse.from} type="date" value={value('from')} onChange={set('from')} />
      <Field label={texts.browse.to} type="date" value={value('to')} onChange={set('to')} />
      <Field
        label={texts.fields.metadata}
        placeholder='{"team": "platform"}'
        value={value('metadata')}
        onChange={set('metadata')}
      />
      <Choice
        label={texts.browse.order}
        value={value('order') || 'id'}
        onChange={(next) => changeParams({ order: next === 'id' ? '' : next })}
        options={[
          ['id', texts.browse.orders.id],
          ['event_time', texts.browse.orders.event_time],
        ]}
      />
    </div>
  );
}

import { address, changeParams, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Choice, Failed, Waiting } from '../../parts/basics.tsx';
import { count } from '../../parts/format.ts';
import { useLoad } from '../../parts/use-load.ts';
import { texts } from '../../texts.ts';
import type { EntityPage, NameList } from '../../types.ts';

/** The filter that a name of each kind sets; '' for entities, whose names open a page instead. */
const FILTER_OF = { users: 'user_id', sessions: 'sessions', tags: 'tags', types: 'types', entities: '' } as const;
type Kind = keyof typeof FILTER_OF;
const KINDS = Object.keys(FILTER_OF) as Kind[];
/** Greatest number of names of one kind that are shown. */
const SHOWN = 50;

interface Counted {
  readonly name: string;
  readonly label: string;
  readonly memories: number;
}

/**
 * Shows users, sessions, tags, types or entities with their numbers of memories. A click filters the list of memories
 * by the name, or opens the page of an entity.
 */
export function Names() {
  const kind = KINDS.find((name) => name === address.value.params.get('names')) ?? 'users';
  const user = address.value.params.get('user_id') ?? undefined;
  const needsUser = kind === 'sessions' && user === undefined;
  const { data, error, reload } = useLoad(needsUser ? null : `${kind} ${user}`, (signal) => read(kind, user, signal));
  return (
    <aside class="card-flat stack" aria-label={texts.browse.names}>
      <Choice
        label={texts.browse.names}
        value={kind}
        onChange={(next) => changeParams({ names: next === 'users' ? '' : next }, { replace: true })}
        options={KINDS.map((name) => [name, texts.browse.nameKinds[name]])}
      />
      {error !== undefined && <Failed error={error} retry={reload} />}
      {data === undefined && error === undefined && !needsUser && <Waiting lines={1} />}
      {(needsUser || data?.length === 0) && <p class="small muted">{texts.browse.noNames[kind]}</p>}
      <ul class="stack-tight small">
        {data?.map(({ name, label, memories }) => (
          <li key={name} class="between name-line">
            <NameLink kind={kind} name={name} label={label} />
            <span class="muted number">{count(memories)}</span>
          </li>
        ))}
      </ul>
    </aside>
  );
}

function NameLink({ kind, name, label }: { kind: Kind; name: string; label: string }) {
  const { params } = address.value;
  const user = params.get('user_id');
  if (kind === 'entities')
    return (
      <a class="line" href={hrefOf(['name', name], { user_id: user })}>
        {label}
      </a>
    );
  const filter = FILTER_OF[kind];
  return (
    <button
      class="button button-plain button-small line"
      title={label}
      onClick={() => changeParams({ [filter]: name })}
    >
      {label === '' ? '–' : label}
    </button>
  );
}

async function read(kind: Kind, user: string | undefined, signal: AbortSignal): Promise<Counted[]> {
  if (kind === 'entities') {
    const { items } = await send<EntityPage>('GET', '/entities', { query: { l: SHOWN, user_id: user }, signal });
    return items.map(({ name, label, mentions }) => ({ name, label, memories: mentions }));
  }
  const query = { limit: SHOWN, ...(kind === 'users' ? {} : { user_id: user }) };
  const { items } = await send<NameList>('GET', `/${kind}`, { query, signal });
  return items.map(({ name, memories }) => ({ name, label: name, memories }));
}

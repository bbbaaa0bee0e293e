import { address, hrefOf } from '../../address.ts';
import { send } from '../../client.ts';
import { Empty, Failed, MemoryLink, PageHead, Waiting } from '../../parts/basics.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { EntityDetails, MemoryItem } from '../../types.ts';

/** Greatest number of memories whose texts are read. */
const READ_MEMORIES = 30;

/**
 * Page of one entity (a name that memories mention): its relations to other names, and up to 30 memories that mention
 * it.
 */
export function NamePage() {
  const name = address.value.rest[0] ?? '';
  const user = address.value.params.get('user_id') ?? undefined;
  const { data, error, reload } = useLoad(JSON.stringify([name, user]), async (signal) => {
    const query = { user_id: user };
    const details = await send<EntityDetails>('GET', `/entities/${encodeURIComponent(name)}`, { query, signal });
    const read = details.memory_ids.slice(0, READ_MEMORIES);
    const memories = await Promise.all(
      read.map((id) => send<MemoryItem>('GET', `/memory/${id}`, { signal }).catch(() => undefined)),
    );
    return { details, memories: memories.filter((memory) => memory !== undefined) };
  });
  if (error?.status === 404) return <Gone user={user} />;
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  const { details, memories } = data;
  return (
    <article class="page">
      <PageHead
        title={<Line>{details.label}</Line>}
        about={`${details.type}, ${texts.name.mentions(details.mentions)}`}
      >
        <a class="button" href={hrefOf('ask', { query: details.label, user_id: user })}>
          {texts.documents.askAbout}
        </a>
      </PageHead>
      <div class="halves">
        <section class="card-flat stack-tight">
          <h2>{texts.name.relations}</h2>
          {details.relations.length === 0 && <p class="muted">{texts.name.noRelations}</p>}
          <ul class="stack-tight">
            {details.relations.map(({ type, direction, name: other, label, memories: stated }) => (
              <li key={`${type} ${direction} ${other}`} class="row">
                <span class="chip">
                  {direction === 'out' ? '→' : '←'} {type.replaceAll('_', ' ')}
                </span>
                <a href={hrefOf(['name', other], { user_id: user })}>{label}</a>
                <span class="small muted number">{texts.name.mentions(stated)}</span>
              </li>
            ))}
          </ul>
        </section>
        <section class="card-flat stack-tight">
          <h2>{texts.shell.names.browse}</h2>
          <ul class="stack-tight">
            {memories.map(({ id, content }) => (
              <li key={id} class="line">
                <MemoryLink id={id}>
                  <Line>{content}</Line>
                </MemoryLink>
              </li>
            ))}
          </ul>
        </section>
      </div>
    </article>
  );
}

function Gone({ user }: { user: string | undefined }) {
  return (
    <Empty title={texts.name.gone}>
      <p>{texts.name.goneAbout}</p>
      <a class="button" href={hrefOf('browse', { names: 'entities', user_id: user })}>
        {texts.name.all}
      </a>
    </Empty>
  );
}

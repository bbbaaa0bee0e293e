import { send } from '../../client.ts';
import { Failed, MemoryLink, Meter, Waiting } from '../../parts/basics.tsx';
import { fixed } from '../../parts/format.ts';
import { say, sayRefusal } from '../../parts/toast.tsx';
import { useLoad } from '../../parts/use-load.ts';
import { Line } from '../../parts/words.tsx';
import { may } from '../../session.ts';
import { texts } from '../../texts.ts';
import type { LinkItem, LinkList, MemoryItem } from '../../types.ts';
import { Neighbourhood } from './neighbourhood.tsx';

/** Greatest number of links for which the linked memory is read. */
const READ_LINKS = 24;

/** A link with the memory at its other end. */
interface LinkedMemory {
  readonly link: LinkItem;
  /** The linked memory; undefined if it was not read, cannot be read or was erased. */
  readonly memory: MemoryItem | undefined;
}

/** Shows the links from and to a memory, as a map and as a list. Callers who may write can remove links. */
export function LinksView({ memory }: { memory: MemoryItem }) {
  const { data, error, reload } = useLoad(`${memory.id} ${memory.version}`, (signal) => readLinks(memory.id, signal));
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return <Waiting />;
  return (
    <section class="stack" aria-label={texts.memory.tabs.links}>
      <Neighbourhood memory={memory} />
      {data.length === 0 ? (
        <p class="muted">{texts.memory.noLinks}</p>
      ) : (
        <ul class="card-flat stack">
          {data.map((linked) => (
            <LinkRow
              key={`${linked.link.type} ${linked.link.direction} ${linked.link.id}`}
              {...linked}
              from={memory.id}
              onChange={reload}
            />
          ))}
        </ul>
      )}
    </section>
  );
}

async function readLinks(id: string, signal: AbortSignal): Promise<LinkedMemory[]> {
  const { items } = await send<LinkList>('GET', `/memory/${id}/links`, { signal });
  return Promise.all(
    items.map(async (link, at) => ({
      link,
      memory:
        at < READ_LINKS
          ? await send<MemoryItem>('GET', `/memory/${link.id}`, { signal }).catch(() => undefined)
          : undefined,
    })),
  );
}

function LinkRow({ link, memory, from, onChange }: LinkedMemory & { from: string; onChange: () => void }) {
  const isOut = link.direction === 'out';
  const remove = () =>
    void send('DELETE', '/memory/link', {
      body: { src: isOut ? from : link.id, dst: isOut ? link.id : from, type: link.type },
    }).then(() => {
      say(texts.memory.unlinked);
      onChange();
    }, sayRefusal);
  return (
    <li class="between">
      <div class="stack-tight grow">
        <div class="row small">
          <span class="chip">
            {isOut ? '→' : '←'} {link.type.replaceAll('_', ' ')}
          </span>
          <Meter value={link.weight} name={texts.memory.weight} />
          <span class="muted">
            {link.automatic ? texts.memory.automatic : texts.memory.stated}
            {link.similarity !== null && `, ${texts.memory.similarity} ${fixed(link.similarity)}`}
          </span>
        </div>
        <div class="line">
          <MemoryLink id={link.id}>{memory === undefined ? undefined : <Line>{memory.content}</Line>}</MemoryLink>
        </div>
      </div>
      {may('write') && (
        <button class="button button-small" onClick={remove}>
          {texts.memory.unlink}
        </button>
      )}
    </li>
  );
}

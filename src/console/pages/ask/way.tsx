import { hrefOf } from '../../address.ts';
import { MemoryLink } from '../../parts/basics.tsx';
import { fixed } from '../../parts/format.ts';
import { Line } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { MatchItem } from '../../types.ts';

interface WayProps {
  readonly match: MatchItem;
  readonly explain: NonNullable<MatchItem['explain']>;
  readonly among: readonly MatchItem[];
}

/** Shows how a match was found: by words, by its vector, or along links from another memory. */
export function Way({ match, explain: { lexical, dense, arrival, rerank, features }, among }: WayProps) {
  return (
    <details class="small">
      <summary>
        {[lexical && texts.ask.byWords, dense && texts.ask.byVector, arrival && texts.ask.byLink]
          .filter(Boolean)
          .join(' · ') || texts.ask.byOther}
      </summary>
      <dl class="facts">
        {lexical && (
          <Fact
            name={texts.ask.byWords}
            value={texts.ask.words(lexical.rank, fixed(lexical.bm25), fixed(lexical.coverage))}
          />
        )}
        {dense && (
          <Fact
            name={texts.ask.byVector}
            value={texts.ask.vector(dense.rank, fixed(dense.similarity, 3), dense.window)}
          />
        )}
        {arrival && (
          <>
            <dt>{texts.ask.byLink}</dt>
            <dd>
              <Steps match={match} via={arrival.via} entity={arrival.entity} among={among} />{' '}
              {texts.ask.activation(fixed(arrival.activation), arrival.hops)}
            </dd>
          </>
        )}
        <Fact name={texts.ask.features} value={listOf(features)} />
        {rerank && <Fact name={texts.ask.rerank} value={listOf(rerank)} />}
      </dl>
    </details>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd class="number">{value}</dd>
    </>
  );
}

function listOf(values: Readonly<Record<string, number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${fixed(value, 3)}`)
    .join(', ');
}

interface StepsProps {
  readonly match: MatchItem;
  readonly via: string;
  readonly entity: string | undefined;
  readonly among: readonly MatchItem[];
}

function Steps({ match, via, entity, among }: StepsProps) {
  const known = new Map(among.map(({ id, content }) => [id, content]));
  return (
    <span class="stack-tight">
      {match.path.slice(0, -1).map((id) => (
        <span key={id}>
          <MemoryLink id={id}>{known.has(id) ? <Line>{known.get(id)!.slice(0, 80)}</Line> : undefined}</MemoryLink> →
        </span>
      ))}
      <span>
        {via === 'entity' && entity !== undefined ? (
          <a href={hrefOf(['name', entity], { user_id: match.user_id })}>{entity}</a>
        ) : (
          <span class="chip">{via}</span>
        )}
      </span>
    </span>
  );
}

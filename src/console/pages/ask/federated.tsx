import { hrefOf } from '../../address.ts';
import { Empty, Failed, Meter, SectorName, Waiting } from '../../parts/basics.tsx';
import { duration, fixed } from '../../parts/format.ts';
import type { Loaded } from '../../parts/use-load.ts';
import { Line, Words } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { FederatedAnswer } from '../../types.ts';
import { HitHead } from './hits.tsx';

type Match = FederatedAnswer['matches'][number];
type Member = FederatedAnswer['members'][number];
type Origin = Match['origin'];

/**
 * Shows the best matches of all tenants and servers that were queried, each with its origin, and which of them failed.
 */
export function FederatedView({ loaded: { data, error, isLoading, reload } }: { loaded: Loaded<FederatedAnswer> }) {
  if (error !== undefined) return <Failed error={error} retry={reload} />;
  if (data === undefined) return isLoading ? <Waiting /> : null;
  return (
    <div class="columns">
      <section class="stack" aria-label={texts.ask.tabs.hits} aria-busy={isLoading}>
        {data.degraded && <p class="notice notice-warn">{texts.federated.degraded}</p>}
        {data.matches.length === 0 && (
          <Empty title={texts.ask.nothingTitle}>
            <p>{texts.federated.nothing}</p>
          </Empty>
        )}
        <ol class="hits">
          {data.matches.map((match, index) => (
            <li key={`${originOf(match.origin)} ${match.id}`}>
              <Hit match={match} rank={index + 1} />
            </li>
          ))}
        </ol>
        {data.truncated === true && <p class="notice">{texts.federated.truncated}</p>}
      </section>
      <Members members={data.members} />
    </div>
  );
}

/** Shows a match. A memory of another server has no link, since it cannot be opened here. */
function Hit({ match, rank }: { match: Match; rank: number }) {
  const { id, origin, content, title, tags, score, primary_sector: sector } = match;
  const isHere = origin.server === null;
  return (
    <article class="card hit" aria-label={texts.ask.hit(rank)}>
      <HitHead
        rank={rank}
        score={fixed(score)}
        userId={match.user_id}
        at={match.event_time}
        href={isHere ? hrefOf(['memory', id], { tenant: origin.tenant }) : undefined}
      >
        <SectorName sector={sector} />
      </HitHead>
      {title !== '' && (
        <h2 class="minor">
          <Line>{title}</Line>
        </h2>
      )}
      <Words isCut>{content}</Words>
      <div class="row">
        <span class={`chip ${isHere ? '' : 'chip-good'}`}>{originOf(origin)}</span>
        {tags.map((tag) => (
          <span key={tag} class="chip">
            #{tag}
          </span>
        ))}
        <Meter value={score} name={texts.federated.score} sector={sector} />
      </div>
    </article>
  );
}

function originOf({ tenant, server }: Origin): string {
  if (server === null) return texts.federated.tenant(tenant ?? '');
  return tenant === null ? server : `${server}, ${texts.federated.tenant(tenant)}`;
}

function Members({ members }: { members: readonly Member[] }) {
  return (
    <aside class="card-flat stack" aria-label={texts.federated.asked}>
      <h2>{texts.federated.asked}</h2>
      <p class="small muted">{texts.federated.about}</p>
      <ul class="stack">
        {members.map((member) => (
          <li key={originOf(member)} class="stack-tight">
            <div class="between">
              <b>{originOf(member)}</b>
              <span class={`chip ${toneOf(member)}`}>{texts.federated.outcomes[member.outcome]}</span>
            </div>
            {member.detail !== null && <p class="small">{member.detail}</p>}
            <p class="small muted number">
              {texts.federated.counts(member.matches, duration(member.ms))}
              {member.server === null && member.recall_id !== null && (
                <>
                  {' · '}
                  <a href={hrefOf(['recall', member.recall_id], { tenant: member.tenant })}>{texts.federated.recall}</a>
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
    </aside>
  );
}

function toneOf({ outcome, degraded }: Member): string {
  if (outcome !== 'answered') return 'chip-bad';
  return degraded ? 'chip-warn' : 'chip-good';
}

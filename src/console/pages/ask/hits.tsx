import type { ComponentChildren } from 'preact';
import { hrefOf } from '../../address.ts';
import { Empty, SectorName, Time } from '../../parts/basics.tsx';
import { fixed } from '../../parts/format.ts';
import { Line, Words } from '../../parts/words.tsx';
import { texts } from '../../texts.ts';
import type { MatchItem } from '../../types.ts';
import { ScoreBar } from './score.tsx';
import { Way } from './way.tsx';

/** Shows the matches of an answer, best first, or a note if there are none. */
export function Hits({ matches }: { matches: readonly MatchItem[] }) {
  if (matches.length === 0) {
    return (
      <Empty title={texts.ask.nothingTitle}>
        <p>{texts.ask.nothing}</p>
      </Empty>
    );
  }
  return (
    <ol class="hits">
      {matches.map((match, index) => (
        <li key={match.id}>
          <Hit match={match} rank={index + 1} among={matches} />
        </li>
      ))}
    </ol>
  );
}

function Hit({ match, rank, among }: { match: MatchItem; rank: number; among: readonly MatchItem[] }) {
  const { explain } = match;
  return (
    <article class="card hit" aria-label={texts.ask.hit(rank)}>
      <HitHead
        rank={rank}
        score={fixed(match.score)}
        scoreTitle={texts.ask.rawScore(fixed(match.raw_score, 4))}
        userId={match.user_id}
        at={match.event_time}
        href={hrefOf(['memory', match.id])}
      >
        {match.sectors.map((sector) => (
          <SectorName key={sector} sector={sector} />
        ))}
      </HitHead>
      {match.title !== '' && (
        <h2 class="minor">
          <Line>{match.title}</Line>
        </h2>
      )}
      <Words terms={explain?.terms} isCut>
        {match.content}
      </Words>
      <Place match={match} />
      {explain !== undefined && <ScoreBar score={match.score} explain={explain} />}
      {explain !== undefined && <Way match={match} explain={explain} among={among} />}
    </article>
  );
}

interface HitHeadProps {
  readonly rank: number;
  readonly score: string;
  readonly scoreTitle?: string;
  readonly userId: string;
  readonly at: number;
  /** Address of the memory; undefined for one that cannot be opened, since it is on another server. */
  readonly href: string | undefined;
  /** Chips with the sectors of the memory. */
  readonly children: ComponentChildren;
}

/** Shows the line above a match: its rank and score, its sectors, user and time, and a link to the memory. */
export function HitHead({ rank, score, scoreTitle, userId, at, href, children }: HitHeadProps) {
  return (
    <div class="between">
      <div class="row">
        <span class="rank">{rank}</span>
        <span class="score" title={scoreTitle}>
          {score}
        </span>
        {children}
      </div>
      <div class="row small muted">
        {userId !== '' && <span>{userId}</span>}
        <Time at={at} />
        {href !== undefined && <a href={href}>{texts.open}</a>}
      </div>
    </div>
  );
}

/**
 * Shows facts about a match as chips: its position in a document, what it supersedes, how many similar memories it
 * stands for, its tags, and its status unless it is active.
 */
function Place({ match: { document, supersedes, similar, tags, status } }: { match: MatchItem }) {
  const chips = [
    document !== undefined && (
      <a key="document" class="chip" href={hrefOf(['document', document.document_id])}>
        {placeIn(document)}
      </a>
    ),
    supersedes !== undefined && (
      <a key="supersedes" class="chip" href={hrefOf(['memory', supersedes])}>
        {texts.ask.supersedes}
      </a>
    ),
    similar !== undefined && (
      <span key="similar" class="chip">
        {texts.ask.similar(similar.count)}
      </span>
    ),
    status !== 'active' && (
      <span key="status" class="chip chip-warn">
        {status}
      </span>
    ),
    ...tags.map((tag) => (
      <span key={`tag ${tag}`} class="chip">
        #{tag}
      </span>
    )),
  ].filter(Boolean);
  return chips.length === 0 ? null : <div class="row">{chips}</div>;
}

/**
 * Returns the title of a document, its headings down to the match, and the pages or chunk of the match. If the first
 * heading is the same as the title, it appears only once.
 */
function placeIn(document: NonNullable<MatchItem['document']>): string {
  const { title, heading_path: headings } = document;
  const names = headings[0] === title ? headings : [title, ...headings];
  return [...names, pagesOf(document)].filter(Boolean).join(' › ');
}

function pagesOf({ page_from: from, page_to: to, chunk, chunks }: NonNullable<MatchItem['document']>): string {
  if (from !== null) return texts.ask.pages(from, to ?? from);
  return chunk === null ? '' : texts.ask.chunk(chunk + 1, chunks);
}

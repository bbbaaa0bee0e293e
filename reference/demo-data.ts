/** A small world for the pictures of the console: what an agent remembers of a few weeks with two people. */

const DAY_MS = 86_400_000;

interface DemoMemory {
  readonly content: string;
  readonly user_id: string;
  readonly session_id?: string;
  readonly title?: string;
  readonly tags?: readonly string[];
  /** Days before now at which it happened. */
  readonly daysAgo: number;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

const ana = (daysAgo: number, content: string, tags: readonly string[] = [], session = ''): DemoMemory => ({
  content,
  user_id: 'ana',
  tags,
  daysAgo,
  session_id: session,
});

/** The memories, the oldest first. */
export const DEMO_MEMORIES: readonly DemoMemory[] = [
  ana(92, 'Ana joined the platform team at Meridian in Lisbon and reports to Tomás.', ['people']),
  ana(80, 'The payments service is written in Go and talks to PostgreSQL through pgbouncer.', [
    'payments',
    'architecture',
  ]),
  ana(76, 'Deploys to staging happen every Thursday at 14:00.', ['deploy', 'staging'], 'planning'),
  ana(61, 'Ana prefers short answers with a code example first and the explanation after it.', ['preference']),
  ana(58, 'I felt really frustrated when the release was blocked by a flaky end-to-end test for two days.', [
    'release',
  ]),
  ana(
    55,
    'To roll back: open the deploy page, choose the previous build, press Rollback, then watch the error rate.',
    ['deploy', 'runbook'],
    'incident-17',
  ),
  ana(
    54,
    'Yesterday the checkout was down for eleven minutes because a migration locked the orders table.',
    ['incident'],
    'incident-17',
  ),
  ana(
    53,
    'Lesson from the outage: migrations on large tables run with lock_timeout and are tried on staging first.',
    ['incident', 'lesson'],
    'incident-17',
  ),
  ana(47, 'Kubernetes runs in two clusters, one in Frankfurt and one in Dublin; staging lives in Dublin only.', [
    'architecture',
    'staging',
  ]),
  ana(40, 'Ana is allergic to peanuts and vegetarian, which matters for team lunches.', ['people']),
  ana(33, 'The JWT of the mobile app expires after fifteen minutes and is refreshed with a rotating refresh token.', [
    'auth',
    'architecture',
  ]),
  ana(
    30,
    'We decided to move from Jenkins to GitHub Actions by the end of the quarter.',
    ['decision', 'ci'],
    'planning',
  ),
  ana(24, 'GitHub Actions now builds the payments service; the pipeline takes seven minutes.', ['ci', 'payments']),
  ana(21, 'I noticed that I plan better on Monday mornings, before the first meeting.', ['reflection']),
  ana(14, 'To get access to the production database, ask Tomás for a ticket and use the read-only role.', [
    'runbook',
    'access',
  ]),
  ana(9, 'Ana was delighted with the new dashboards: the error budget is visible at last.', ['monitoring']),
  ana(6, 'Deploys to staging happen every Tuesday after the stand-up.', ['deploy', 'staging'], 'planning'),
  ana(3, 'The error budget of the payments service for this month is used up to 62 percent.', [
    'payments',
    'monitoring',
  ]),
  ana(1, 'Yesterday evening Ana asked for a summary of the open incidents and got three of them.', ['incident']),
  {
    content: 'Ben prefers tabs to spaces and wants diffs without formatting changes.',
    user_id: 'ben',
    tags: ['preference'],
    daysAgo: 28,
  },
  {
    content: 'Ben is learning Portuguese and practises every day before breakfast.',
    user_id: 'ben',
    tags: ['people'],
    daysAgo: 20,
  },
  {
    content: 'The invoice of October was paid twice; the refund is expected by the fifteenth.',
    user_id: 'ben',
    tags: ['invoice'],
    daysAgo: 12,
  },
  { content: 'Ben felt proud when the importer handled a million rows without an error.', user_id: 'ben', daysAgo: 5 },
];

/** A document that is read into several parts. */
export const DEMO_DOCUMENT = `# Handbook of the platform team

How we run what others build on.

## Deploys

Staging is deployed every Tuesday after the stand-up. Production follows on Wednesday if the error rate stays
below half a percent for a day. Whoever deploys stays reachable for an hour afterwards.

## Rollback

Open the deploy page, choose the previous build number and press Rollback. Watch the error rate for ten
minutes. If it does not fall, call the person on duty: the number is in the channel's topic.

## On call

Two people are on duty each week, one in Lisbon and one in Dublin. The handover is on Monday at ten. An alert
that nobody acknowledges within five minutes goes to the second person.

## Databases

PostgreSQL has a primary and two replicas in each region. Migrations on tables with more than a million rows
run with a lock timeout of two seconds, and are tried on a copy first. Read-only access needs a ticket.
`;

/** The body of `POST /memory/add` for a memory of the demo. */
export function demoBody({ daysAgo, ...memory }: DemoMemory, now = Date.now()): object {
  return { ...memory, event_time: now - daysAgo * DAY_MS };
}

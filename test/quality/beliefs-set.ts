/**
 * An evaluation set of short facts as agents keep them about their users, and of questions that each have an exact
 * answer: these facts and no others. Some facts have a scope, as a tag; some replace an earlier one; many are near
 * twins that differ in one word. A third of the questions has no answer. All people and projects are invented, and the
 * set was written before the code that it measures.
 */
import type { EvaluationMemory, EvaluationUser } from '../../bench/datasets.ts';

/** A question, with the facts that are its exact answer. */
export interface ExactQuestion {
  readonly userId: string;
  readonly query: string;
  /** Only memories with this tag are searched; all if left out. */
  readonly scope?: string;
  /** Keys of all memories that answer the question; empty if none does. */
  readonly exact: readonly string[];
}

type Fact = readonly [key: string, content: string, more?: Partial<EvaluationMemory>];

const facts = (list: readonly Fact[]): EvaluationMemory[] =>
  list.map(([key, content, more]) => ({ key, sessionId: 'beliefs', content, ...more }));

const ATLAS = { tags: ['atlas'] };
const HARBOUR = { tags: ['harbour'] };

/** A developer with two projects. */
const DANA = facts([
  ['editor', 'Dana edits code in Helix.'],
  ['theme', 'Dana prefers a light colour theme.'],
  ['indent', 'Dana indents with two spaces.'],
  ['shell', 'Her login shell is fish.'],
  ['laptop', 'Dana works on a ThinkPad with 32 GB of memory.'],
  ['review', 'Dana wants pull requests to stay under 400 lines.'],
  ['commits', 'Commit messages are written in the imperative.'],
  ['meetings', 'Dana takes no meetings before ten in the morning.'],
  ['standup', 'The stand-up of the platform team is at 10:15.'],
  ['manager', 'Her manager is Priya Raman.'],
  ['mentor', 'Dana mentors Luca, who joined in March.'],
  ['atlas-db', 'Atlas stores its orders in PostgreSQL 16.', ATLAS],
  ['atlas-cache', 'Atlas caches sessions in Valkey.', ATLAS],
  ['atlas-deploy', 'Atlas is deployed to Frankfurt on Tuesdays.', ATLAS],
  ['atlas-tests', 'The tests of Atlas take eleven minutes.', ATLAS],
  ['atlas-owner', 'The owner of Atlas is Ines Duarte.', ATLAS],
  ['atlas-port', 'The Atlas API listens on port 7410.', ATLAS],
  ['atlas-port-staging', 'On staging the Atlas API listens on port 7510.', ATLAS],
  ['harbour-db', 'Harbour stores its shipments in MariaDB.', HARBOUR],
  ['harbour-deploy', 'Harbour is deployed to Dublin on Thursdays.', HARBOUR],
  ['harbour-owner', 'The owner of Harbour is Tomasz Wilk.', HARBOUR],
  ['harbour-queue', 'Harbour sends its events through NATS.', HARBOUR],
  ['harbour-freeze', 'Releases of Harbour are frozen in December.', HARBOUR],
  ['ci-old', 'The build runs on Jenkins.'],
  ['ci', 'The build runs on Buildkite.', { supersedes: 'ci-old' }],
  ['oncall-old', 'Dana is on call in odd weeks.'],
  ['oncall', 'Dana is on call in even weeks.', { supersedes: 'oncall-old' }],
]);

/** A man at home with his family. */
const OMAR = facts([
  ['wife', 'Omar is married to Salma.'],
  ['daughter', 'His daughter Yara was born on 14 May 2016.'],
  ['son', 'His son Idris was born on 2 November 2019.'],
  ['yara-allergy', 'Yara is allergic to walnuts.'],
  ['idris-allergy', 'Idris is allergic to penicillin.'],
  ['yara-school', 'Yara goes to the Linden primary school.'],
  ['idris-school', 'Idris goes to the kindergarten on Mill Street.'],
  ['yara-sport', 'Yara plays handball on Mondays.'],
  ['idris-sport', 'Idris learns to swim on Saturdays.'],
  ['car', 'Omar drives a blue Skoda.'],
  ['car-salma', 'Salma drives a grey Fiat.'],
  ['dentist', 'The dentist of the family is Dr. Feld.'],
  ['doctor', 'The paediatrician is Dr. Okafor.'],
  ['coffee', 'Omar drinks his coffee without sugar.'],
  ['tea', 'Salma drinks green tea in the evening.'],
  ['meat', 'Omar eats no pork.'],
  ['wifi', 'The wifi at home is called Nightjar.'],
  ['bins', 'The paper bin is emptied on every second Wednesday.'],
  ['cat', 'The cat of the family is called Biscuit.'],
  ['job-old', 'Omar works as a pharmacist at the station.'],
  ['job', 'Omar works as a pharmacist at the hospital.', { supersedes: 'job-old' }],
  ['flat-old', 'The family lives on the third floor in Kepler Street 9.'],
  ['flat', 'The family lives in a house in Orchard Lane 27.', { supersedes: 'flat-old' }],
]);

/** A woman who runs a small bakery. */
const JUNE = facts([
  ['flour', 'June orders flour from Haller Mill.'],
  ['butter', 'June buys butter from the Alder dairy.'],
  ['eggs', 'The eggs come from Farmer Brandt.'],
  ['opening', 'The bakery opens at half past six.'],
  ['sunday', 'On Sundays the bakery is closed.'],
  ['rye', 'A rye loaf costs 4.80.'],
  ['spelt', 'A spelt loaf costs 5.60.'],
  ['oven', 'The big oven was serviced in February.'],
  ['mixer', 'The mixer is leased until 2027.'],
  ['apprentice', 'The apprentice is called Noor.'],
  ['baker', 'The baker of the night shift is Emil.'],
  ['tax', 'Her tax adviser is Ms. Kranz.'],
  ['bank', 'The account of the bakery is at the Volksbank.'],
  ['delivery', 'The hotel Seeblick gets forty rolls each morning.'],
  ['cafe', 'The cafe Amsel gets ten loaves of rye on Fridays.'],
  ['rent-old', 'The rent of the shop is 1,450 a month.'],
  ['rent', 'The rent of the shop is 1,620 a month.', { supersedes: 'rent-old' }],
  ['van', 'The van has its inspection in September.'],
]);

export const BELIEF_USERS: readonly EvaluationUser[] = [
  { userId: 'dana', memories: DANA },
  { userId: 'omar', memories: OMAR },
  { userId: 'june', memories: JUNE },
];

const ask = (userId: string, query: string, exact: readonly string[], scope?: string): ExactQuestion => ({
  userId,
  query,
  exact,
  ...(scope === undefined ? {} : { scope }),
});

export const EXACT_QUESTIONS: readonly ExactQuestion[] = [
  ask('dana', 'Which editor does Dana edit code in?', ['editor']),
  ask('dana', 'What colour theme does Dana prefer?', ['theme']),
  ask('dana', 'How does Dana indent?', ['indent']),
  ask('dana', 'Which login shell does she use?', ['shell']),
  ask('dana', 'How much memory does the ThinkPad have?', ['laptop']),
  ask('dana', 'How many lines may pull requests have?', ['review']),
  ask('dana', 'How are commit messages written?', ['commits']),
  ask('dana', 'When does the stand-up begin?', ['standup']),
  ask('dana', 'Who is her manager?', ['manager']),
  ask('dana', 'Whom does Dana mentor?', ['mentor']),
  ask('dana', 'Where does Atlas store orders?', ['atlas-db']),
  ask('dana', 'What caches the sessions of Atlas?', ['atlas-cache']),
  ask('dana', 'When is Atlas deployed?', ['atlas-deploy']),
  ask('dana', 'When is Harbour deployed?', ['harbour-deploy']),
  ask('dana', 'Who is the owner of Atlas?', ['atlas-owner']),
  ask('dana', 'Who is the owner of Harbour?', ['harbour-owner']),
  ask('dana', 'Who owns which project?', ['atlas-owner', 'harbour-owner']),
  ask('dana', 'How long do the tests of Atlas take?', ['atlas-tests']),
  ask('dana', 'On which ports does the Atlas API listen?', ['atlas-port', 'atlas-port-staging']),
  ask('dana', 'On which port does the Atlas API listen on staging?', ['atlas-port-staging']),
  ask('dana', 'When are releases frozen?', ['harbour-freeze']),
  ask('dana', 'What does the build run on?', ['ci']),
  ask('dana', 'In which weeks is Dana on call?', ['oncall']),
  ask('dana', 'Who is the owner?', ['harbour-owner'], 'harbour'),
  ask('dana', 'When is it deployed?', ['atlas-deploy'], 'atlas'),
  ask('dana', 'What stores the shipments?', ['harbour-db'], 'harbour'),
  ask('omar', 'Whom is Omar married to?', ['wife']),
  ask('omar', 'When was Yara born?', ['daughter']),
  ask('omar', 'When was Idris born?', ['son']),
  ask('omar', 'What is Yara allergic to?', ['yara-allergy']),
  ask('omar', 'What is Idris allergic to?', ['idris-allergy']),
  ask('omar', 'Which allergies do the children have?', ['yara-allergy', 'idris-allergy']),
  ask('omar', 'Which school does Yara go to?', ['yara-school']),
  ask('omar', 'Where is the kindergarten of Idris?', ['idris-school']),
  ask('omar', 'What does Yara play?', ['yara-sport']),
  ask('omar', 'When does Idris swim?', ['idris-sport']),
  ask('omar', 'What car does Omar drive?', ['car']),
  ask('omar', 'What does Salma drive?', ['car-salma']),
  ask('omar', 'Who is the dentist?', ['dentist']),
  ask('omar', 'Who is the paediatrician of the children?', ['doctor']),
  ask('omar', 'Does Omar take sugar in his coffee?', ['coffee']),
  ask('omar', 'What is the wifi called?', ['wifi']),
  ask('omar', 'When is the paper bin emptied?', ['bins']),
  ask('omar', 'Where does Omar work?', ['job']),
  ask('omar', 'Where does the family live?', ['flat']),
  ask('june', 'Where does June order flour?', ['flour']),
  ask('june', 'Who delivers the eggs?', ['eggs']),
  ask('june', 'When does the bakery open?', ['opening']),
  ask('june', 'What does a rye loaf cost?', ['rye']),
  ask('june', 'What do the loaves cost?', ['rye', 'spelt']),
  ask('june', 'When was the oven serviced?', ['oven']),
  ask('june', 'Until when is the mixer leased?', ['mixer']),
  ask('june', 'Who is the tax adviser?', ['tax']),
  ask('june', 'How many rolls does the hotel get?', ['delivery']),
  ask('june', 'What is the rent of the shop?', ['rent']),
  ask('june', 'When is the inspection of the van?', ['van']),
  // Nothing answers these, though some of their words stand in the facts of the same user.
  ask('dana', 'Which keyboard does Dana type on?', []),
  ask('dana', 'What is the salary of Dana?', []),
  ask('dana', 'Where was Dana born?', []),
  ask('dana', 'What is the birthday of Priya Raman?', []),
  ask('dana', 'Which queue does Atlas send its events through?', [], 'atlas'),
  ask('dana', 'How many servers does Harbour have?', []),
  ask('dana', 'Which licence does Atlas have?', []),
  ask('dana', 'Where does Luca live?', []),
  ask('dana', 'Does Dana like jazz?', []),
  ask('dana', 'Which port does Harbour listen on?', [], 'harbour'),
  ask('omar', 'What is the shoe size of Yara?', []),
  ask('omar', 'Which instrument does Idris play?', []),
  ask('omar', 'What is the name of the dog?', []),
  ask('omar', 'What does Salma work as?', []),
  ask('omar', 'When is the wedding anniversary?', []),
  ask('omar', 'What is the password of the wifi?', []),
  ask('omar', 'Where did Omar study?', []),
  ask('omar', 'When is the glass bin emptied?', []),
  ask('omar', 'Which football club does Omar support?', []),
  ask('june', 'Where does June buy sugar?', []),
  ask('june', 'What does a croissant cost?', []),
  ask('june', 'Who cleans the windows?', []),
  ask('june', 'How old is Noor?', []),
  ask('june', 'Which insurance does the bakery have?', []),
  ask('june', 'When did June marry?', []),
  ask('june', 'What is the telephone number of Haller Mill?', []),
  ask('june', 'Is there an alarm system in the shop?', []),
  ask('june', 'Which newspaper does Emil read?', []),
];

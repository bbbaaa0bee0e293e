/**
 * The patterns by which `classify` recognises the sectors of a text.
 */
import type { Sector } from '../types.ts';

/**
 * Patterns of each sector, separated by `|`, with the weight of each pattern in the group. The weight of the sector
 * (`SectorProfile.weight`) is not yet multiplied into it. A pattern is a sequence of words in a text; `^` stands for
 * the beginning of a sentence and `<class>` for any word of a class in `WORD_CLASSES`. English patterns come first. A
 * few plain patterns of other languages follow, written without accents, as `normalise` leaves words.
 */
export const SECTOR_PATTERNS: Readonly<Record<Sector, readonly (readonly [weight: number, patterns: string])[]>> = {
  episodic: [
    [
      1,
      `<past> | in <year> | on <day> | <day> evening | <day> morning | <day> afternoon | <day> night | since <year>
      | in <month> | at <clock> | <date> | over the holidays | over the weekend | all weekend | at the conference
      | at the meeting | in the meeting | got married | for the first time | first time | was born | had lunch
      | had dinner | had breakfast | had a`,
    ],
    [
      1.8,
      `yesterday | last <span> | last <season> | last <month> | last <day> | <span> ago | earlier today
      | the other day | when i was | when we were | the day before | once upon a time`,
    ],
    [
      1.4,
      `this morning | this afternoon | this evening | tonight | earlier this <span> | the next day | on <month>
      | on <number> <month> | <month> <number> | on <number> of <month> | <who> <past> | <who> was | <who> were
      | the user <past> | the customer <past> | the client <past> | the agent <past> | the assistant <past>
      | the team <past> | back in`,
    ],
    [
      0.5,
      `was | were | had | did | today | during | after the | while | happened | event | meeting | session | trip
      | visit | birthday | wedding`,
    ],
    [
      1.8,
      `ayer | anoche | la semana pasada | el ano pasado | esta manana | gestern | letzte woche | letztes jahr
      | heute morgen | hier | hier soir | la semaine derniere | l'annee derniere | ce matin | вчера
      | на прошлой неделе | в прошлом году | сегодня утром`,
    ],
  ],
  semantic: [
    [
      1,
      `is | are | uses | use of | has <number> | have <number> | contains | belongs to | depends on | supports
      | requires | costs | speaks | prefers | keeps | offers | allows | covers | runs on | runs every | converts
      | measures | provides | returns | includes | expires | equals | owns | holds | is stored | is hosted | is open
      | was founded | was invented | was written by | has a | has an | has three | has two | does not`,
    ],
    [
      1.4,
      `is a | is an | is the | are a | is called | is known as | also known as | stands for | is defined as
      | consists of | is located | works as | works at | works for | lives in | lives with | is allergic | refers to
      | superset of | capital of | means the | means that | ^define | definition of | meaning of | concept of`,
    ],
    [
      0.5,
      `has | have | default | limit | version | policy | maximum | minimum | per | each | on average | between
      | named | percent | number | address | must be | can be | usually | typically | every`,
    ],
    [
      0.8,
      `es un | es una | es la | es el | ist ein | ist eine | ist die | ist der | ist das | est un | est une | est la
      | est le | это | является`,
    ],
  ],
  procedural: [
    [
      2.2,
      `how to | ^step <number> | ^steps | these steps | ^to <do> | ^in order to | ^first <do> | ^always <do>
      | ^never <do> | ^please <do> | ^then <do> | ^next <do> | ^finally <do> | ^do not | ^don't | the best way to
      | instructions | ^make sure | step by step`,
    ],
    [1.8, `^<do>`],
    [
      1.6,
      `^start by | ^begin by | ^begin with | ^whenever | ^should the | , then | are restored with | ^in case
      | ^use the | by sending | by pressing | by clicking | ^as soon as | followed by | ask your | ^you <do>
      | ^every time you`,
    ],
    [
      1.2,
      `make sure | then <do> | , <do> | : <do> | and then | you need to | you must | you should | you can
      | you have to | if you | when you | once you | before you | after you | by <ing> | process is | procedure
      | recipe | workflow | checklist | tutorial | walkthrough | be sure to | in order to | remember to`,
    ],
    [
      0.7,
      `and <do> | steps | step | ^first | ^if the | ^if a | ^once the | ^when <ing> | ^before <ing> | ^after <ing>
      | before <ing> | until | for each | ^when a | ^for <ing> | press | click | command | configure | install
      | instead of`,
    ],
    [
      1.8,
      `como <do> | paso <number> | primero | wie man | schritt <number> | zuerst | comment faire | etape <number>
      | d'abord | шаг <number> | сначала | чтобы`,
    ],
  ],
  emotional: [
    [
      3,
      `was <feeling> | were <feeling> | is <feeling> | are <feeling> | felt <feeling> | am <feeling> | i'm <feeling>
      | i've been feeling | seemed <feeling> | seems <feeling> | sounds <feeling> | makes me <feeling>
      | makes me feel | i can't believe | tired of | sick of | gives me the creeps | to death | breaks my heart
      | fed up | driving me crazy | can't stand | cannot stand | burst into tears`,
    ],
    [
      2.2,
      `over the moon | up the wall | stomach turn | burst out | knot of | on edge | can't bear | cannot bear
      | long for | in tears | lost my temper | lost his temper | lost her temper | burned out | burnt out
      | freaks me out | freaked out | cheers me up | lifts my spirits | on cloud nine | heart sank
      | bottom of my heart | at peace | in love | goosebumps | feels like home | had enough of | give up
      | hard to bear | got so | so glad | <feeling> | i feel | i felt | i'm feeling | been feeling | feels great
      | feels good | feels bad | can't wait | looking forward to | my heart | means a lot | means the world
      | smiling | close to giving up | was <liking> | were <liking> | i <liking> | he <liking> | she <liking>
      | we <liking> | they <liking> | best day ever | worst day ever | her heart | his heart | with joy | so tired`,
    ],
    [
      1.2,
      `<liking> | feel | feels | felt | feeling | feelings | mood | emotion | emotional | heart | tears | smile
      | smiled | laughing | laughed | so much | what a | more than i can say | deeply | i'm so | gives me | trembled
      | shaking | creeps | sighed`,
    ],
    [0.5, `<praise>`],
    [0.25, `! | very | really | so | such a | honestly | finally`],
    [
      2,
      `feliz | triste | contento | contenta | enojado | enojada | tengo miedo | me encanta | odio | glucklich
      | traurig | wutend | ich liebe | ich hasse | angst | ich freue mich | heureux | heureuse | j'adore
      | je deteste | en colere | j'ai peur | счастлив | счастлива | грустно | люблю | ненавижу | боюсь | рад | рада`,
    ],
  ],
  reflective: [
    [
      3.2,
      `i used to | i realised | i realized | i've realised | i've realized | i have realised | i have realized
      | looking back | in hindsight | in retrospect | with hindsight | i should have | we should have | i could have
      | i wish i had | i tend to | i noticed that i | i noticed that my | i notice that | i wonder | i regret
      | i learned that | i learnt that | i've learned | i have learned | i've learnt | i have learnt | lesson for me
      | lessons learned | lesson learned | the lesson | taught me | taught us | it occurred to me | occurred to me
      | dawned on me | i've come to | i have come to | reflecting on | on reflection | upon reflection
      | i see myself | i consider myself | self-reflection | self-assessment | i am the kind | i'm the kind
      | i am the type | i'm the type | i am learning to | i'm learning to | i now believe | i now think | i now see
      | i understand now | i now understand | thinking about it | thinking back | deep down | i was wrong
      | my weakness | my biggest | my greatest | my strength | my strengths | my weaknesses | my goal is | my goals
      | my habit | my purpose | my values | my view of | my view on | next time i | i find that | i found that i
      | i think i have | i think i am | i think i'm | i've become | i have become | i keep making | i keep <ing>
      | if i could | if i had | why do i | why did i | who i am | took away from | take away from | the insight
      | key insight | it turns out that i | turns out i | made me realise | made me realize | makes me realise
      | makes me realize | i value | i believe that | about myself | as a person | the same mistake | i overestimate
      | i underestimate | what matters to me | i'm at my best | i am at my best | who am i | had i been
      | had i known | i have a habit | habit of | going forward i | showed me how | showed me that | has made me
      | i see that i | i notice i | i noticed i | i realise | i realize | i guess i | i misread | i misjudged
      | i overthink | i overcomplicate | i procrastinate | i've always been | i have always been | i want to be more
      | i want to become | i need to stop | i care too much | stop comparing | i struggle with | i need to learn
      | i should`,
    ],
    [
      2.4,
      `i've noticed | i have noticed | i've found that | i have found that | i've grown | i have grown | i've always
      | made me see | made me think | made me understand | helped me see | helped me understand | changed the way i
      | as an assistant i | as an assistant , i | as a model i | as an agent i | as an agent , i | as a model , i
      | as an ai | if i am honest | if i'm honest | to be honest with myself | than to myself | my need for
      | my worst | my best | my tendency | i have a tendency | comes from my | i am not as | i'm not as
      | what i keep | i must admit | i admit that | i've been too | i have been too | i was too | i forget that
      | i rely too | it is clear to me | it's clear to me | i ask myself | i asked myself | my mind about
      | i changed my mind | with experience | my experience shows | shaped me | changed me | made me who | for me ,
      | my blind spot | blind spot | comfort zone | i have to admit | i expect too much | too hard on myself
      | i trust my | trust my | what drives me | what motivates me`,
    ],
    [
      1.6,
      `i always | my own | i never | insight | reflection | reflect | hindsight | myself | mistake | i believe
      | i think | i understand | i need to | i often | perhaps i | maybe i | growth | i work best | i am more
      | i'm more | i am better | i'm better | i am most | conclusion | pattern of | perspective | my approach
      | my answers | my summaries | my plans | my estimates | my reasoning | my responses | over the years
      | over the past year | my attitude | my priorities | better than i thought | to me is | when i'm | when i am
      | gives me better | my confidence | i want to be | i'd rather | made me more | made me a`,
    ],
    [
      0.8,
      `when i | i am | i'm | how i | the way i | than i | that i | what i | i keep | i have always | no longer
      | these days i | i now | to me | made me | makes me | it took me | me to understand | in myself | i want to
      | i try to | i lean | i prefer to | my decisions | my work | decisions | i ought to | better at | worse at
      | by nature | i do best | i ought`,
    ],
    [0.4, `i | my | me | why | learned | realised | realized | assumption | assumptions | should have`],
    [
      3,
      `me di cuenta | aprendi que | mirando atras | ich habe gelernt | ich habe gemerkt | mir ist klar
      | im nachhinein | ruckblickend | j'ai appris | j'ai realise | avec le recul | я понял | я поняла | я осознал
      | я осознала`,
    ],
  ],
};

/**
 * Patterns of each sector in scripts without spaces, with their weights. Each pattern counts once for a text, however
 * often it matches. The patterns are few on purpose: a text that no pattern matches counts as semantic.
 */
export const UNSPACED_PATTERNS: Readonly<Record<Sector, readonly (readonly [weight: number, pattern: RegExp])[]>> = {
  episodic: [
    [1.8, /昨天|昨晚|前天|上周|上个月|去年|今天早上|刚才|昨日|先週|先月|昨夜|今朝|어제|지난주|지난달|작년/],
    [0.8, /今天|今日|오늘|ました|했다|했습니다/],
  ],
  semantic: [[1, /是一|位于|属于|等于|とは|である|입니다|이다/]],
  procedural: [[2, /首先|然后|步骤|如何|怎么做|请先|まず|手順|方法|してください|먼저|방법|하세요/]],
  emotional: [
    [
      2.2,
      /高兴|开心|难过|伤心|生气|害怕|喜欢|讨厌|焦虑|嬉しい|悲しい|楽しい|怖い|大好き|嫌い|행복|슬프|기쁘|무섭|좋아/,
    ],
  ],
  reflective: [[3, /我意识到|我明白了|我学会|反思|回想起来|気づいた|気付いた|反省|振り返|깨달았|돌이켜/]],
};

/**
 * The words of each class, separated by blanks, by the name of the class without its brackets. A word that is listed in
 * several classes belongs to the last of them. Words of the classes `<number>`, `<year>`, `<clock>` and `<date>` are
 * recognised by their form, and so are unlisted words of `<past>` and `<ing>`.
 */
export const WORD_CLASSES: Readonly<Record<string, string>> = {
  who: `i we he she they you someone somebody everyone nobody`,
  span: `night week weekend month year minute minutes hour hours day days weeks months years decade decades quarter
    century`,
  season: `spring summer autumn fall winter christmas easter`,
  day: `monday tuesday wednesday thursday friday saturday sunday`,
  month: `january february march april may june july august september october november december`,
  past: `went met told said bought sold came left got made took gave found lost broke fell ran drove flew wrote sent
    spent slept woke ate drank saw heard won built began caught brought knew kept held paid drew sang swam grew
    became rode stole threw wore shook spoke stood sat lay led hit fought sought hid bit blew froze rang
    sank shot stuck struck swore tore gone done seen`,
  // Words in -ed that describe a state instead of an event.
  state: `hundred indeed breed speed greed exceed proceed succeed embed shred kindred sacred wicked naked rugged
    infrared moped advanced assorted compressed distributed limited unlimited rated gifted talented detailed complicated
    sophisticated supposed related`,
  feeling: `happy happier happiest sad sadder angry anger furious afraid scared fear terrified startled anxious
    anxiety worried worry nervous stressed stress stressful overwhelmed frustrated frustrating frustration annoyed
    annoying irritated upset hurt lonely depressed depressing miserable heartbroken devastated disappointed
    disappointing disappointment excited exciting thrilled delighted joy joyful glad relieved relief grateful
    gratitude thankful proud pride ashamed shame embarrassed embarrassing guilty jealous jealousy envious bored
    boring exhausted exhausting hopeless hopeful hate hates hated hating despise dislike dislikes dread dreads cry
    cried crying wept sobbed awful terrible horrible touched grief grieving mourning panic panicked shocked
    surprised amused confused hugged comforted insecure homesick nostalgic ecstatic elated gutted hurtful
    resent resents bitter rage raging worrying heartwarming delight delightful unhappy mad tense uneasy ugh laugh
    laughed laughs laughing giggle giggled giggling grin grinned beaming blissful serene satisfied dissatisfied
    offended insulted humiliated helpless powerless discouraged encouraged inspired motivated demotivated passionate
    enthusiastic eager fascinated alarmed horrified disgusted disgust appalled outraged livid irate infuriated
    infuriating enraged cranky grumpy moody gloomy melancholy sorrow tearful weeping sobbing sobs abandoned rejected
    betrayed unloved unwanted yearn yearning longing cherish cherished fond affection affectionate compassion
    sympathy pity remorse despair desperate agony anguish suffering suffers painful distress distressed distressing
    traumatised traumatized traumatic restless jittery apprehensive shy intimidated petrified frightened frightening
    scary scares terror terrifying nightmare unsettled unsettling disturbed disturbing contempt grudge spite hatred
    loathe loathes detest detests unbearable fun hilarious euphoric euphoria exhilarated exhilarating overjoyed
    relaxed relaxing comforting reassured optimistic pessimistic cynical self-conscious inferior worthless unworthy
    impressed amazed astonished stunned speechless bewildered torn conflicted numb drained burnout weary bothers
    bothered saddens saddened hurts envy envies envied forgive appreciate appreciates appreciated appreciative
    cheered cheering pleasantly tormented haunted haunts crush flattered uncomfortable awkward`,
  liking: `love loves loved loving adore adores adored enjoy enjoys enjoyed calm pleased kindness sorry miss misses
    blush blushes blushed impatient peace peaceful rude charmed cheerful`,
  praise: `wonderful amazing awesome fantastic wow yay lovely beautiful great nice super`,
  do: `add adjust allow append apply ask assign attach avoid bake beat boil book breathe bring brush build call cancel
    change check choose clean clear click clone close collect combine commit compare compile complete configure
    confirm connect contact convert cook copy cover create cut debug delete deploy describe dilute disable
    disconnect divide document double download drag drain draw drop edit enable encrypt ensure enter escalate escape
    estimate evaluate execute export extract fetch fill filter find finish fit fix fold follow format freeze gather
    generate give grab grate grease hold identify import include increase initialize insert inspect install invite
    invoke iterate keep knead knot label launch leave let lift limit list load lock log look lower measure melt
    merge mix monitor move multiply name navigate note notify open order organize pack paint pair park pass paste
    pause peel pick place plan plug point pour practice preheat prepare press prevent print profile provide publish
    pull push put query reboot rebase rebuild record reduce refactor refer refresh register release reload remove
    rename renew repeat replace report request reset resize resolve restart restore retry return review revoke rinse
    roll rotate run save scan schedule scroll search season seal select send serve set shake share shut sign simmer
    skip slice slide soak sort specify spread sprinkle squeeze start stir stop store submit subtract switch sync tag
    tap test tie toggle transfer trim try turn type undo unlock unplug untar update upgrade upload use validate
    verify visit wait warm wash weigh whisk wipe wrap write zip activate archive authenticate calculate instantiate
    provision mash chop dice fry grill roast tighten loosen screw unscrew sand drill detach swap split join untick
    tick marinate prune bend tilt twist hang hook hammer nail glue stick spray toss blend drizzle crack separate
    toast defrost thaw chill refrigerate cool uncheck hover highlight zoom expand collapse swipe dial email inform
    consult obtain fasten align position raise relax inhale exhale stretch squat kneel flip rub polish scrub vacuum
    sweep mop dry iron sew stitch cast pay deposit withdraw subscribe unsubscribe mute block flag prioritise
    prioritize triage reproduce isolate bisect annotate normalise normalize hash encode decode serialise serialize
    parse render mock lint reformat bump pin dissolve preview forward reply draft outline sketch trace rearrange
    stack tape lubricate oil charge discharge eject bookmark warn flash reinstall unzip`,
};

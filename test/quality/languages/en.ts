import type { LanguageSet } from './language-set.ts';

/**
 * The memories of an English-speaking user: things read about history, wildlife, medicine, law and engineering, and
 * short notes about the family, the house and a software team.
 */
export const ENGLISH: LanguageSet = {
  language: 'en',
  memories: [
    [
      'mill-harrow',
      'Harrow Brook Mill was founded by the Quaker merchant Josiah Penhale in 1793 to spin cotton for the Bristol stocking trade. A single breastshot wheel, six metres across, drove all four floors until a beam engine arrived in 1831. At its height the mill employed 240 people, a third of them children under fourteen. A fire in 1867 gutted the carding room, and production never recovered. The surviving wing now houses a youth hostel.',
    ],
    [
      'mill-tansley',
      'Tansley Mill, two valleys north of Harrow Brook, made paper rather than cloth. Widow Agnes Corby bought the site in 1808 and installed one of the first Fourdrinier machines outside London. Its thick, cream-coloured sheets were used for banknotes until 1874. The mill pond was notorious for turning blue on Thursdays, when the ledgers were ruled with dyed ink. It closed in 1962 and was converted into flats thirty years later.',
    ],
    [
      'observatory-kestrel',
      'The Kestrel Hill Observatory opened in 1911 after the brewer Edmund Laidlaw left his fortune to the county astronomical society. Its 61-centimetre refractor was ground in Dublin and shipped in a crate packed with horsehair. From here Winifred Tate discovered fourteen variable stars, working unpaid for nineteen years. Street lighting ended serious research in the 1950s. Volunteers still open the dome to the public on the first clear Friday of each month.',
    ],
    [
      'observatory-saltmarsh',
      'Saltmarsh Radio Observatory consists of eight movable dishes on a disused railway line, chosen because the track was perfectly straight for nearly five kilometres. It was set up in 1964 by Professor Hugh Oduya, who had worked on radar during the war. The array mapped hydrogen clouds in neighbouring galaxies. Visitors must switch off their phones at the gate, and even the canteen microwave sits inside a metal cage.',
    ],
    [
      'sea-otter',
      'Sea otters have the densest fur of any mammal, with up to 150,000 hairs on each square centimetre of skin, because they lack the blubber that keeps seals warm. They eat about a quarter of their body weight every day and crack shellfish on stones balanced on their chests. By grazing on sea urchins they protect kelp forests. Mothers wrap sleeping pups in strands of kelp so that they do not drift away.',
    ],
    [
      'river-otter',
      'The Eurasian otter lives along rivers, lakes and sheltered coasts and feeds mostly on fish and eels. It vanished from much of lowland England in the 1960s, poisoned by the pesticide dieldrin, and had returned to every county by 2011. Adults are solitary and mark their territory with droppings called spraint, which smell oddly of jasmine tea. Cubs are born blind in a burrow known as a holt and stay with their mother for about a year.',
    ],
    [
      'curling',
      'Curling is played on a sheet of ice about 45 metres long, sprinkled with water droplets that freeze into tiny bumps called pebble. Each team of four delivers eight granite stones per end, and a stone weighs close to twenty kilograms. Sweeping melts the surface slightly, so the stone travels farther and bends less. Most Olympic stones come from Ailsa Craig, an island off the Scottish coast. The captain is called the skip.',
    ],
    [
      'bowls',
      'Lawn bowls is played on a flat green with bowls that are weighted on one side, so they follow a curved path. Players try to finish nearest to a small white ball called the jack. Sir Francis Drake is said to have insisted on finishing his game before facing the Armada in 1588, although no record from the time confirms it. Crown green bowls, popular in northern England, uses a surface that rises in the middle.',
    ],
    [
      'asthma',
      'Asthma narrows the airways through inflammation and tightening of the surrounding muscle. Typical triggers are pollen, dust mites, cold air, exercise and tobacco smoke. A blue inhaler containing salbutamol relaxes the muscle within minutes, while a brown one with a steroid must be used daily to prevent attacks. Anyone who needs the reliever more than three times a week should have their treatment reviewed. A peak flow meter helps patients to notice that trouble is coming.',
    ],
    [
      'migraine',
      'Migraine is a throbbing headache, usually on one side, that lasts between four hours and three days and gets worse with movement. About a quarter of sufferers first notice an aura, often zigzag lines or a blind spot. Women are affected three times as often as men. Triptans work best when taken early in the pain phase. Taking painkillers on more than ten days a month can itself bring on headaches.',
    ],
    [
      'sourdough',
      'A sourdough starter is a mixture of flour and water in which wild yeast and lactic acid bacteria live together. It is fed with fresh flour at least once a week if kept in the fridge, and daily at room temperature. A ripe starter floats in water. Bakers slash the loaf so that it opens where they want, and bake it in a lidded iron pot for the first twenty minutes to trap steam, which keeps the crust soft while it rises.',
    ],
    [
      'marmalade',
      'Seville oranges, which are in season only in January and early February, make the best marmalade because their peel is bitter and their pips are rich in pectin. The pips are tied in a muslin bag and simmered with the shredded peel for about two hours before any sugar goes in, since sugar stops the peel from softening. A teaspoonful dropped on a chilled saucer should wrinkle when pushed. Set is reached at about 104.5 degrees.',
    ],
    [
      'tenancy-law',
      'In England a landlord may not take a deposit of more than five weeks’ rent if the yearly rent is below £50,000. The deposit must be placed in a government-approved protection scheme within thirty days, and the tenant told which one. If this is not done, a court can award the tenant between one and three times the amount. Landlords must also have gas appliances checked every twelve months by a registered engineer.',
    ],
    [
      'copyright-law',
      'Copyright in a novel published in the United Kingdom lasts for seventy years after the end of the year in which the author died. It arises automatically, with no need to register. Sound recordings are protected for seventy years from release, while the typographical layout of a page is covered for only twenty-five. Short quotations for criticism or review are allowed under fair dealing, as long as the source is acknowledged. Ideas themselves cannot be protected.',
    ],
    [
      'bagpipes',
      'The Great Highland bagpipe has a chanter with nine notes and three drones, one bass and two tenor, which sound continuously. Air is stored in a bag, once made of sheepskin and now often of synthetic cloth, so the melody never pauses for breath. Players separate repeated notes with quick ornaments called grace notes. The classical repertoire, piobaireachd, was passed on by singing syllables rather than by writing. Reeds are cut from Spanish cane.',
    ],
    [
      'harp',
      'The concert harp has forty-seven strings and seven pedals, each of which has three positions and alters one note of the scale in every octave. C strings are coloured red and F strings black or blue so that the player can find the way. The little finger is never used. Sébastien Érard patented the double-action mechanism in Paris in 1810. The soundboard, made of spruce, has to withstand a pull of roughly a ton.',
    ],
    [
      'canal',
      'The Wendle Canal was dug between 1788 and 1796 to carry limestone from the quarries at Orrin Edge to the kilns on the estuary. Its engineer, Barnaby Stroud, avoided a tunnel by building a flight of twenty-three locks, the steepest in the kingdom. Barges were hauled by mules rather than horses, because they ate less. The railway bought the company in 1859 and let the channel silt up. Enthusiasts reopened the upper section in 1998.',
    ],
    [
      'viaduct',
      'Carrow Viaduct carries the branch line across the Tave gorge on fourteen brick arches, the highest of which stands 41 metres above the water. Construction began in 1861 and cost the lives of nine navvies, remembered on a plaque beneath the third pier. Designer Isabella Rennick submitted the drawings under her brother’s name, which came to light only when her letters were auctioned in 1979. Trains must slow to thirty kilometres an hour in high winds.',
    ],
    [
      'wool-trade',
      'In the fourteenth century wool was England’s chief export, and Flemish weavers prized the long fleeces of Cotswold sheep above all others. From 1363 nearly all sales abroad had to pass through the Staple at Calais, where a tax was collected for the Crown. Wealthy dealers paid for the great parish churches of Northleach and Chipping Campden. The Lord Speaker in the upper house still sits on a cushion stuffed with wool as a reminder.',
    ],
    [
      'tin-trade',
      'Cornish miners produced tin for the bronze age and were still the world’s leading suppliers in the early nineteenth century. Ore was crushed by water-powered stamps and smelted with charcoal, later coal. A tribute system let groups of men bid for a section of rock and keep a share of what they raised. When cheap deposits opened in Malaya and Bolivia, thousands emigrated; they were known as Cousin Jacks. South Crofty, the last mine, closed in 1998.',
    ],
    [
      'volcano',
      'The Laki fissure in southern Iceland erupted for eight months from June 1783. It poured out about fourteen cubic kilometres of lava and released so much fluorine that half of the island’s cattle and four fifths of its sheep died. Roughly a fifth of the inhabitants starved in the famine that followed. A dry sulphurous fog drifted over Europe, and the winter that came after was among the coldest of the century. Pastor Jón Steingrímsson kept a detailed diary.',
    ],
    [
      'glacier',
      'Glaciers form where more snow falls in winter than melts in summer, until the weight of the layers squeezes them into dense blue ice. They move by sliding on meltwater at the base and by slow internal flow, typically a few dozen metres a year. Rocks frozen into the sole scratch the valley floor. The heaps of rubble left at the sides and the snout are called moraines. About 69 percent of all fresh water on Earth is locked up in ice.',
    ],
    [
      'honeybee',
      'A honeybee colony in midsummer holds about fifty thousand workers, all female, a few hundred drones and one queen, who lays up to two thousand eggs a day. A forager tells her sisters where nectar can be found by means of the waggle dance: the angle shows the direction relative to the sun and the length of the run the distance. Workers live six weeks in summer, but several months in winter. Larvae destined to be queens receive royal jelly throughout.',
    ],
    [
      'bumblebee',
      'Bumblebees can fly in colder weather than most insects because they warm their flight muscles by shivering. A nest rarely holds more than four hundred individuals and dies out in autumn; only young mated queens survive, sleeping underground until spring. They grip tomato flowers and vibrate them to shake the pollen loose, a habit called buzz pollination, and are bred commercially for greenhouses. Britain has twenty-four species, one of them reintroduced from Sweden in 2012.',
    ],
    [
      'heat-pump',
      'A heat pump moves warmth from outside air, ground or water into a building by compressing a refrigerant. For each kilowatt-hour of electricity it delivers three to four of heat, less on very cold days. It works best with large radiators or underfloor pipes fed at no more than 45 degrees. Air-source units need regular defrosting, which they do by briefly running backwards. Ground-source systems cost more because trenches or boreholes have to be dug, but last longer.',
    ],
    [
      'wind-turbine',
      'A modern offshore wind turbine has blades over a hundred metres long made of glass and carbon fibre. It starts to turn at about three metres per second and shuts down above twenty-five to avoid damage. No design can capture more than 59.3 percent of the energy in the wind, a limit derived by Albert Betz in 1919. Most stand on steel monopiles hammered into the seabed; during the work, curtains of air bubbles muffle the noise for porpoises.',
    ],
    [
      'novelist',
      'Dorothea Vance was born above a chandler’s shop in Whitby in 1884 and went to sea as a stewardess at seventeen. Her first book, The Tar Barrel, was turned down by eleven publishers before a Leeds printer took it on in 1913. She wrote standing up at a draughtsman’s table and burned all her early drafts. Critics remember her chiefly for the trilogy about the Marrick family. She refused a damehood in 1951.',
    ],
    [
      'explorer',
      'The botanist Callum Reith spent six years in the mountains of Yunnan and sent home the seeds of more than three hundred plants, including a yellow rhododendron that bears his name. He travelled with a collapsible rubber bath and a gramophone. In 1905 he escaped an ambush by hiding in a river for a night, breathing through a reed. He never learned to drive. His herbarium, some nine thousand sheets, is kept in Edinburgh.',
    ],
    [
      'venus',
      'Venus turns on its axis backwards and so slowly that its day, 243 Earth days, is longer than its year of 225. A thick blanket of carbon dioxide traps heat and keeps the ground at about 465 degrees, hotter than Mercury. The clouds consist of sulphuric acid. The Soviet probe Venera 7 made the first soft landing in 1970 and transmitted for twenty-three minutes. Radar maps show more than 1,600 large volcanoes.',
    ],
    [
      'theatre',
      'The Lantern Theatre in Brisport grew out of a strike: in 1926 idle dockers put on a play in a fish warehouse to raise money for their families. Its first director, Nell Garvey, charged a loaf of bread or threepence for admission. The building has no curtain and the audience sits on three sides. A flood in 1953 destroyed the costumes. The company has premiered over two hundred new plays and keeps a quarter of the seats for people under twenty-five.',
    ],
    [
      'note-dentist',
      'Dentist Thursday 18th at 2:40 with Dr Okafor, crown on the upper left molar. Don’t eat for two hours after.',
    ],
    ['note-optician', 'Optician booked for Sat 27th, 11am, bring old glasses + the prescription from last year'],
    [
      'note-nuts',
      'My nephew Theo is badly allergic to cashews and pistachios, peanuts are ok. EpiPen is in the blue pouch.',
    ],
    ['note-gluten', 'Aunt Marjorie has coeliac disease so no wheat, rye or barley - keep a separate toaster for her.'],
    [
      'note-priya',
      'Priya moved to the Lisbon office in March; anything about vendor contracts goes to Callum Moss now.',
    ],
    [
      'note-anders',
      'Anders runs payroll. He needs timesheets by the 22nd, otherwise the money slips to the following month.',
    ],
    [
      'note-coffee',
      'I drink one flat white in the morning, oat milk, and nothing with caffeine after noon because I sleep badly.',
    ],
    [
      'note-tea',
      'Hannah takes her tea strong, with a splash of milk and two sugars. Never Earl Grey, she thinks it tastes of soap.',
    ],
    ['note-seat', 'When booking flights I always want a window seat on the left, well in front of the wing.'],
    ['note-train', 'For train journeys get me the quiet coach, a table seat if possible, facing forwards.'],
    ['note-wifi', 'cottage wifi: network Puffin_Guest, password is herring-42-lobster. router lives under the stairs'],
    ['note-alarm', 'The burglar alarm code for the workshop is 6630, you get thirty seconds before it goes off.'],
    ['note-cat', 'Our tabby Biscuit has an overactive thyroid: half a tablet twice a day, hidden in cream cheese.'],
    ['note-dog', 'Mum’s greyhound is called Duchess, scared of hot air balloons, walks only on the towpath.'],
    ['note-grandad', 'Grandad turns 90 on 3 November, lunch for thirty at the Plough. Ruth is sorting out the cake.'],
    [
      'note-wedding',
      'Ellie & Jamal get married 14 June in the botanical gardens. Dress code is "garden bright", no black please',
    ],
    [
      'note-rent',
      'Rent is £1,180, goes out by standing order on the 28th. Mr Petrakis wants two months’ notice if we leave.',
    ],
    ['note-council', 'council tax is 163 a month for ten months, nothing to pay in feb and march'],
    [
      'note-car',
      'Car passed its MOT yesterday but the garage said the rear tyres are nearly at the limit, replace before winter.',
    ],
    ['note-bike', 'Bike is at Spokes & Sons getting a new chain and cassette, pick up Friday after four, 95 quid.'],
    [
      'note-run',
      'Signed up for the Loch Leven half marathon in May. Training runs Tuesday, Thursday and a long one on Sunday.',
    ],
    [
      'note-shoulder',
      'Physio says three sets of ten with the red band every evening for my right shoulder, no overhead lifting till June.',
    ],
    ['note-maya', 'Maya is in Year 4, teacher is Mr Whitcombe, and she needs her recorder every Monday.'],
    ['note-felix', 'Felix has cubs on Wednesdays at six in the church hall, and he still owes £12 for the camp.'],
    ['note-merge', 'We never merge to main after 3pm on a Friday, unless Sunita signs it off in the incident channel.'],
    ['note-backup', 'Nightly database dump runs at 01:30 UTC, kept 21 days on the box called heron.'],
    [
      'note-client',
      'Bellweather Foods want the figures as a plain spreadsheet, no slides, sent to Ingrid two working days before the call.',
    ],
    ['note-style', 'Keep your answers to me short: British spelling, no bullet points unless I ask for them.'],
    [
      'note-medicine',
      'Dad is on warfarin, so no cranberry juice and ask the pharmacist before giving him any cold remedy!',
    ],
    ['note-drill', 'Lent the hammer drill to Gareth at number 9 back in August... still waiting for it, chase him.'],
  ],
  questions: [
    // Very short.
    ['Harrow Brook Mill founder?', ['mill-harrow']],
    ['Curling stone weight?', ['curling']],
    ['Who patented harp pedals?', ['harp']],
    ['Longest migraine attack?', ['migraine']],
    ['How hot is Venus?', ['venus']],
    ['Cottage internet password?', ['note-wifi']],
    ['What’s Biscuit’s illness?', ['note-cat']],
    ['How much rent?', ['note-rent']],
    // Middling.
    ['What was the paper from Tansley used to print?', ['mill-tansley']],
    ['Whose bequest paid for the telescope on Kestrel Hill?', ['observatory-kestrel']],
    ['Who established the radio observatory at Saltmarsh, and when?', ['observatory-saltmarsh']],
    ['How do sea otters stop their babies floating off?', ['sea-otter']],
    ['Which chemical wiped out otters in the English lowlands?', ['river-otter']],
    ['In lawn bowls, what do you call the target ball?', ['bowls']],
    ['What colour is the preventer inhaler for asthma?', ['asthma']],
    ['How can I tell that my sourdough culture is ready to use?', ['sourdough']],
    ['When do novels go out of copyright in Britain?', ['copyright-law']],
    ['Which animals pulled the boats on the Wendle Canal?', ['canal']],
    ['Where did English wool sellers have to take their goods from 1363?', ['wool-trade']],
    ['What happened to the livestock in Iceland when Laki blew up?', ['volcano']],
    ['When am I seeing Dr Okafor and what is she fixing?', ['note-dentist']],
    ['Which nuts must Theo stay away from?', ['note-nuts']],
    ['Who do I ask about supplier agreements since Priya left?', ['note-priya']],
    ['Where should I sit on a plane?', ['note-seat']],
    ['Who is in charge of the birthday cake for Grandad?', ['note-grandad']],
    ['What does Maya have to take to school on Mondays?', ['note-maya']],
    ['Whose approval is needed to ship code late on a Friday?', ['note-merge']],
    ['Who borrowed my power tool and hasn’t returned it?', ['note-drill']],
    // Long; the first five come after a sentence of context.
    [
      'I bought far too many bitter oranges at the market this morning. At what point in the cooking should the sugar be added so that the rind doesn’t stay tough?',
      ['marmalade'],
    ],
    [
      'My flatmate has just moved out and never got any paperwork about her deposit. How much compensation could a judge make the landlord pay if it was never protected?',
      ['tenancy-law'],
    ],
    [
      'We’re thinking of getting rid of the old gas boiler. How many units of warmth would we get out of a heat pump for every unit of power we pay for?',
      ['heat-pump'],
    ],
    [
      'We’ve got guests from the States coming in June, all asking what to wear. What outfits are people supposed to choose for Ellie and Jamal’s ceremony, and which colour is banned?',
      ['note-wedding'],
    ],
    [
      'The disk on the database server died in the night. On which machine are the saved copies stored, and how far back can we go?',
      ['note-backup'],
    ],
    [
      'How did it finally become known that a woman had in fact drawn up the plans for the viaduct over the Tave gorge?',
      ['viaduct'],
    ],
    [
      'How many publishing houses rejected the debut of the Whitby-born author, and who agreed in the end to bring it out?',
      ['novelist'],
    ],
    [
      'By what trick did the Scottish plant hunter in China get away from the men who attacked him at the beginning of the last century?',
      ['explorer'],
    ],
    [
      'What could you hand over at the door of the Lantern instead of money in its early days, if you wanted to see a play there?',
      ['theatre'],
    ],
    [
      'Why are bumblebees raised and sold to growers of tomatoes under glass, and what is the name for the way in which they free the pollen?',
      ['bumblebee'],
    ],
    [
      'In what format does the food company want us to deliver our numbers, to whom, and how long in advance of the meeting should they arrive?',
      ['note-client'],
    ],
    [
      'Which exercises am I meant to be doing each night for the sore shoulder, and until which month do I have to avoid lifting things above my head?',
      ['note-shoulder'],
    ],
  ],
  unanswerable: [
    'How tall is the Eiffel Tower?',
    'What is the currency of Mongolia?',
    'How long do emperor penguins sit on their eggs?',
    'How does the knight move in chess?',
    'What do camels store in their humps?',
    'In which year did the Ottoman Empire come to an end?',
    'Who wrote Hamlet?',
    'What is my shoe size?',
    'When does my life insurance run out?',
    'How do you say "thank you" in Hungarian?',
    'Who painted The Starry Night?',
    'What is a blockchain?',
    'Which substance slows down the neutrons in a nuclear reactor?',
    'Where did the tango begin, and how did it reach Paris?',
    'I watched a sumo tournament last night. What is the highest rank a wrestler can hold?',
    'Which law firm does my cousin work for?',
    'What are the toes of ballet shoes stiffened with?',
    'How many days were there in the Mayan calendar year?',
    'At what temperature is milk chocolate tempered, and why does it turn white if it has been stored badly?',
    'Where is Granny’s old sewing machine now?',
  ],
};

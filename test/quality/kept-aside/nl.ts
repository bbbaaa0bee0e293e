import type { LanguageSet } from '../languages/language-set.ts';

/** The notes and questions of a Dutch-speaking user; `all.ts` says what they are for. */
export const DUTCH: LanguageSet = {
  language: 'nl',
  memories: [
    ['dentist', 'Afspraak bij de tandarts dinsdag 14 om half tien, dokter Lemmens plaatst een kroon.'],
    ['rent', 'De huur is 940 euro en gaat op de derde van de maand af. Mevrouw Roos wil drie maanden opzegtermijn.'],
    ['wifi', 'Wifi van het huisje: netwerk Marmot, het wachtwoord is spar-27-stamppot.'],
    ['cat', 'Onze poes Kaneel heeft suikerziekte: elke ochtend en avond een prik insuline, na het eten.'],
    ['allergy', 'Mijn neefje Huug is zwaar allergisch voor hazelnoten en cashewnoten; pinda’s zijn geen probleem.'],
    ['seat', 'In de trein wil ik altijd een plaats aan het raam, vooruit rijdend, ver van de toiletten.'],
    ['coffee', 'Ik drink één kop koffie in de ochtend, met havermelk, en na twaalven niets met cafeïne.'],
    ['move', 'Mijn zus Elodie is in februari naar Groningen verhuisd en huurt een tweekamerflat bij de haven.'],
    ['wedding', 'Klaartje en Samir trouwen op 21 juni in de oranjerie. Lichte kleding, maar zeker geen wit.'],
    ['car', 'De auto is door de keuring gekomen, maar de remblokken moeten voor de winter vernieuwd worden.'],
    ['bike', 'De fiets staat bij Trappers & Zoon voor een nieuwe ketting, op te halen vrijdag na vieren.'],
    [
      'race',
      'Ingeschreven voor de halve marathon van Zwolle in mei. Training op dinsdag, donderdag en een lange duurloop op zondag.',
    ],
    [
      'knee',
      'De fysiotherapeut wil elke avond drie keer twaalf kniebuigingen voor mijn linkerknie, niet hardlopen voor april.',
    ],
    ['school', 'Ines zit in groep zes, haar meester is meneer Garritsen, en op maandag heeft ze haar blokfluit nodig.'],
    [
      'backup',
      'De reservekopie van de database loopt elke nacht om twee uur en blijft dertig dagen op de machine reiger.',
    ],
    ['deploy', 'We zetten vrijdag na drie uur nooit iets in productie, tenzij Sonja toestemming geeft.'],
    [
      'client',
      'De firma Bellevaart wil de cijfers in een gewoon rekenblad, zonder dia’s, twee dagen voor de vergadering.',
    ],
    [
      'drill',
      'In augustus heb ik de boormachine uitgeleend aan Gerard van nummer 9. Hij heeft hem nog niet teruggebracht.',
    ],
    ['grandma', 'Oma wordt 90 op 8 november, lunch voor dertig man in de herberg. Lucie regelt de taart.'],
    ['alarm', 'De code van het alarm in de werkplaats is 6630, je hebt dertig seconden voor de sirene gaat.'],
    [
      'sourdough',
      'Een zuurdesem is een mengsel van meel en water waarin wilde gisten leven. In de koelkast voed je hem eens per week. Een rijpe desem drijft op water.',
    ],
    [
      'glacier',
      'Een gletsjer ontstaat als sneeuw jaar na jaar wordt samengedrukt tot blauw ijs. Het puin dat aan de zijkanten achterblijft heet morene.',
    ],
    [
      'bees',
      'Een bijenvolk telt in de zomer vijftigduizend werksters. De haalbij wijst haar zusters de nectar met een dans.',
    ],
    [
      'harp',
      'De concertharp heeft zevenenveertig snaren en zeven pedalen. De snaren van de c zijn rood, die van de f zwart. De pink wordt nooit gebruikt.',
    ],
    [
      'volcano',
      'De kloof Laki op IJsland barstte uit in juni 1783 en doodde de helft van het vee op het eiland door het fluor dat vrijkwam.',
    ],
    [
      'lighthouse',
      'De vuurtoren van Kervaan werd in 1846 gebouwd door ingenieur IJsbrand Tange. De lamp brandde op raapolie tot in 1875 petroleum kwam.',
    ],
    [
      'canal',
      'Het Verdonkkanaal diende om kalk te vervoeren. De schuiten werden getrokken door muildieren, want die aten minder dan paarden.',
    ],
    [
      'heat-pump',
      'Een warmtepomp levert drie tot vier kilowattuur warmte voor elk kilowattuur stroom dat zij verbruikt.',
    ],
    [
      'novelist',
      'Adela Morveld, geboren in Vlissingen in 1884, zag haar eerste roman door elf uitgevers geweigerd. Ze schreef staand en verbrandde haar kladjes.',
    ],
    [
      'observatory',
      'De sterrenwacht op de Pelberg opende in 1911 dankzij het vermogen dat brouwer Emiel Lambrecht naliet.',
    ],
    [
      'migraine',
      'Migraine is hoofdpijn, vaak aan één kant, die vier uur tot drie dagen duurt en erger wordt als je beweegt.',
    ],
    ['tea', 'Hannah drinkt haar thee sterk, met een wolkje melk en twee klontjes. Nooit met bergamot.'],
  ],
  questions: [
    ['Wie behandelt dinsdag mijn gebit?', ['dentist']],
    ['Hoeveel betalen we mevrouw Roos per maand?', ['rent']],
    ['Hoe kom ik in het huisje op internet?', ['wifi']],
    ['Welke ziekte heeft Kaneel?', ['cat']],
    ['Welke noten mag Huug niet eten?', ['allergy']],
    ['Waar moet ik in een treinstel zitten?', ['seat']],
    ['In welke stad woont Elodie nu?', ['move']],
    ['Welke kleur mag je niet dragen op de bruiloft van Klaartje?', ['wedding']],
    ['Wat moet er aan de wagen vervangen worden voor het koud wordt?', ['car']],
    ['Wanneer kan ik mijn fiets ophalen?', ['bike']],
    ['Welke oefeningen moet ik doen voor mijn knie?', ['knee']],
    ['Wie is de leraar van Ines?', ['school']],
    ['Hoe lang worden reservekopieën bewaard?', ['backup']],
    ['Wie moet een late levering op vrijdag goedkeuren?', ['deploy']],
    ['Wie heeft mijn boormachine geleend?', ['drill']],
    ['Hoe weet ik of mijn zuurdesem klaar is?', ['sourdough']],
    ['Hoe heet het puin langs de randen van gletsjers?', ['glacier']],
    ['Welke dieren trokken de boten op het Verdonkkanaal?', ['canal']],
    ['Waarmee gaf de vuurtoren van Kervaan eerst licht?', ['lighthouse']],
    [
      'Iemand vertelde me over een Zeeuwse schrijfster. Hoeveel uitgeverijen wezen het eerste boek van Adela Morveld af?',
      ['novelist'],
    ],
  ],
  unanswerable: [
    'Hoe hoog is de Eiffeltoren?',
    'Wat is de munt van Mongolië?',
    'Hoe beweegt het paard bij schaken?',
    'Wat is mijn schoenmaat?',
    'Wie schilderde de Sterrennacht?',
    'Wanneer loopt mijn levensverzekering af?',
    'Wat slaan kamelen op in hun bulten?',
    'Waar is de tango ontstaan?',
    'Bij welk advocatenkantoor werkt mijn neef?',
    'Wat is de hoogste rang van een sumoworstelaar?',
  ],
};

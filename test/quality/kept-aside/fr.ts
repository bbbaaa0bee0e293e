import type { LanguageSet } from '../languages/language-set.ts';

/** The notes and questions of a French-speaking user; `all.ts` says what they are for. */
export const FRENCH: LanguageSet = {
  language: 'fr',
  memories: [
    ['dentist', 'Rendez-vous chez le dentiste mardi 14 à 9 h 30, le docteur Lemoine pose une couronne.'],
    ['rent', 'Le loyer est de 940 euros, prélevé le 3 du mois. Madame Roussel demande trois mois de préavis.'],
    ['wifi', 'Wifi du chalet : réseau Marmotte, le mot de passe est sapin-27-raclette.'],
    ['cat', 'Notre chatte Cannelle est diabétique : une piqûre d’insuline matin et soir, après son repas.'],
    [
      'allergy',
      'Mon neveu Hugo est gravement allergique aux noisettes et aux noix de cajou ; les arachides vont bien.',
    ],
    ['seat', 'En train, je veux toujours une place côté fenêtre, dans le sens de la marche, loin des toilettes.'],
    ['coffee', 'Je bois un seul café le matin, avec du lait d’avoine, et rien d’excitant après midi.'],
    ['move', 'Ma sœur Élodie a déménagé à Nantes en février, elle loue un deux-pièces près du port.'],
    ['wedding', 'Claire et Samir se marient le 21 juin dans l’orangerie. Tenue claire, surtout pas de blanc.'],
    ['car', 'La voiture a passé le contrôle technique, mais les plaquettes de frein sont à changer avant l’hiver.'],
    ['bike', 'Le vélo est chez Pédales & Cie pour une nouvelle chaîne, à récupérer vendredi après 16 heures.'],
    [
      'race',
      'Inscrite au semi-marathon d’Annecy en mai. Entraînement le mardi, le jeudi et une sortie longue le dimanche.',
    ],
    [
      'knee',
      'Le kiné veut trois séries de douze flexions chaque soir pour mon genou gauche, pas de course avant avril.',
    ],
    ['school', 'Inès est en CM1, son instituteur est Monsieur Garnier, et il lui faut sa flûte le lundi.'],
    ['backup', 'La sauvegarde de la base tourne à 2 heures chaque nuit, gardée trente jours sur la machine héron.'],
    ['deploy', 'On ne met jamais en production le vendredi après 15 heures, sauf si Sonia donne son accord.'],
    [
      'client',
      'La société Belvaux veut les chiffres dans un simple tableur, sans diapositives, deux jours avant la réunion.',
    ],
    ['drill', 'J’ai prêté la perceuse à Gérard, au numéro 9, en août. Il ne l’a toujours pas rapportée.'],
    ['grandma', 'Mamie aura 90 ans le 8 novembre, déjeuner pour trente à l’auberge. Lucie s’occupe du gâteau.'],
    ['alarm', 'Le code de l’alarme de l’atelier est 6630, on a trente secondes avant la sirène.'],
    [
      'sourdough',
      'Le levain est un mélange de farine et d’eau où vivent des levures sauvages. On le nourrit une fois par semaine au froid. Mûr, il flotte dans l’eau.',
    ],
    [
      'glacier',
      'Un glacier naît quand la neige se tasse d’année en année jusqu’à devenir de la glace bleue. Les débris laissés sur ses bords s’appellent des moraines.',
    ],
    [
      'bees',
      'Une colonie d’abeilles compte cinquante mille ouvrières en été. La butineuse indique le nectar à ses sœurs par une danse frétillante.',
    ],
    [
      'harp',
      'La harpe de concert a quarante-sept cordes et sept pédales. Les cordes de do sont rouges, celles de fa noires. On n’utilise jamais l’auriculaire.',
    ],
    [
      'volcano',
      'La fissure du Laki, en Islande, entra en éruption en juin 1783 et tua la moitié du bétail de l’île par le fluor qu’elle rejeta.',
    ],
    [
      'lighthouse',
      'Le phare de Kervian fut bâti en 1846 par l’ingénieur Yves Tanguy. Sa lampe brûlait de l’huile de colza jusqu’à l’arrivée du pétrole en 1875.',
    ],
    [
      'canal',
      'Le canal de Verdoux servait à transporter la chaux. Les péniches étaient tirées par des mulets, qui mangeaient moins que des chevaux.',
    ],
    [
      'heat-pump',
      'Une pompe à chaleur fournit trois à quatre kilowattheures de chaleur pour chaque kilowattheure d’électricité qu’elle consomme.',
    ],
    [
      'novelist',
      'Adèle Morvan, née à Saint-Malo en 1884, vit son premier roman refusé par onze éditeurs. Elle écrivait debout et brûlait ses brouillons.',
    ],
    [
      'observatory',
      'L’observatoire du mont Pelot ouvrit en 1911 grâce à la fortune léguée par le brasseur Émile Lambert.',
    ],
    [
      'migraine',
      'La migraine est un mal de tête, souvent d’un seul côté, qui dure de quatre heures à trois jours et empire quand on bouge.',
    ],
    ['tea', 'Hannah prend son thé fort, avec un nuage de lait et deux sucres. Jamais de bergamote.'],
  ],
  questions: [
    ['Qui me soigne les dents mardi ?', ['dentist']],
    ['Combien paie-t-on à Madame Roussel chaque mois ?', ['rent']],
    ['Comment me connecter à internet au chalet ?', ['wifi']],
    ['Quelle maladie a Cannelle ?', ['cat']],
    ['Quels fruits à coque Hugo doit-il éviter ?', ['allergy']],
    ['Où dois-je m’asseoir dans un wagon ?', ['seat']],
    ['Dans quelle ville habite Élodie maintenant ?', ['move']],
    ['De quelle couleur ne faut-il pas s’habiller au mariage de Claire ?', ['wedding']],
    ['Que faut-il remplacer sur l’auto avant les grands froids ?', ['car']],
    ['Quand puis-je aller chercher mon vélo ?', ['bike']],
    ['Quels exercices dois-je faire pour mon genou ?', ['knee']],
    ['Qui est le maître d’Inès ?', ['school']],
    ['Combien de temps conserve-t-on les sauvegardes ?', ['backup']],
    ['Qui doit approuver une livraison tardive le vendredi ?', ['deploy']],
    ['Qui a emprunté ma perceuse ?', ['drill']],
    ['Comment savoir si mon levain est prêt ?', ['sourdough']],
    ['Comment appelle-t-on les débris au bord des glaciers ?', ['glacier']],
    ['Quels animaux tiraient les bateaux sur le canal de Verdoux ?', ['canal']],
    ['Qu’est-ce qui éclairait le phare de Kervian au début ?', ['lighthouse']],
    [
      'Quelqu’un m’a parlé d’une romancière bretonne. Combien de maisons ont rejeté le premier livre d’Adèle Morvan ?',
      ['novelist'],
    ],
  ],
  unanswerable: [
    'Quelle est la hauteur de la tour Eiffel ?',
    'Quelle est la monnaie de la Mongolie ?',
    'Comment se déplace le cavalier aux échecs ?',
    'Quelle est ma pointure ?',
    'Qui a peint la Nuit étoilée ?',
    'Quand expire mon assurance vie ?',
    'Que stockent les chameaux dans leurs bosses ?',
    'Où est né le tango ?',
    'Dans quel cabinet d’avocats travaille mon cousin ?',
    'Quel est le rang le plus élevé d’un lutteur de sumo ?',
  ],
};

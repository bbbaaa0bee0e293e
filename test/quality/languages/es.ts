import type { LanguageSet } from './language-set.ts';

/**
 * A pharmacist in Valladolid keeps passages from her reading on many subjects, and notes about her family, work and
 * trips.
 */
export const SPANISH: LanguageSet = {
  language: 'es',
  memories: [
    [
      'lighthouse-punta',
      'El faro de Punta Almena se encendió por primera vez el 3 de marzo de 1857, cuatro años después de que naufragara frente al cabo el bergantín Santa Ágata. Su torre octogonal mide 34 metros y está levantada con granito traído en barcazas desde Portugal. Funcionó con aceite de oliva hasta 1883, cuando pasó a la parafina. La última farera, Remedios Louro, se jubiló en 1991, y desde entonces la linterna está automatizada.',
    ],
    [
      'lighthouse-isla',
      'El faro de la isla de Tamborela fue diseñado por la ingeniera Amparo Vidal y se inauguró en 1934. Es un cilindro de hormigón pintado a franjas rojas y blancas, con una luz que alcanza veintidós millas. Durante la guerra permaneció apagado casi tres años. La vivienda del torrero se ha convertido en un albergue de doce plazas para ornitólogos, que acuden en octubre a contar pardelas.',
    ],
    [
      'club-ferroviaria',
      'La Unión Deportiva Ferroviaria de Villasol nació en 1923 en los talleres del tren y viste camiseta granate con pantalón azul. Su mayor logro fue alcanzar los cuartos de final de la Copa en 1958, donde cayó por un gol en el minuto noventa y dos. Juega en el campo de La Aguja, con capacidad para 7.400 espectadores. El delantero Elías Montoro, apodado el Silbato, marcó 141 tantos con el equipo.',
    ],
    [
      'club-baloncesto',
      'El Club Baloncesto Almazara surgió en 1962 cuando un profesor de gimnasia llamado Joaquín Berlanga colocó dos canastas en el patio de un colegio. Ascendió a la máxima categoría en 1989 y permaneció en ella seis temporadas. Su sección femenina ha ganado tres copas autonómicas y entrena en el pabellón Olivar. La afición celebra cada victoria lanzando aceitunas de plástico a la pista, costumbre que obliga a detener el partido.',
    ],
    [
      'anemia-hierro',
      'La anemia ferropénica aparece cuando al organismo le falta hierro para fabricar hemoglobina. Quien la padece se cansa con facilidad, está pálido y a veces siente deseos de masticar hielo. Los médicos miden la ferritina para confirmar el diagnóstico. El tratamiento consiste en tomar sales de hierro en ayunas con algo rico en vitamina C, y separadas del café y los lácteos. Pueden oscurecer las heces, un efecto sin importancia.',
    ],
    [
      'anemia-falciforme',
      'En la anemia falciforme una alteración heredada de ambos padres deforma los glóbulos rojos, que adoptan aspecto de hoz y taponan los vasos pequeños. Provoca crisis muy dolorosas en huesos y abdomen. Quienes llevan una sola copia del gen no enferman y, además, están protegidos contra la malaria grave. La hidroxiurea reduce los episodios y un trasplante de médula puede curar. Conviene beber mucha agua y evitar el frío.',
    ],
    [
      'guitarra-luthier',
      'El guitarrero Baldomero Rivas abrió taller en la calle Cabestreros de Madrid en 1902. Prefería ciprés para los aros y abeto alemán para la tapa, y no barnizaba una pieza sin dejarla colgada tres inviernos. Construyó unas cuatrocientas guitarras, numeradas a mano. La que tocaba la concertista Luz Serrat fue robada en Buenos Aires en 1961 y reapareció dentro de un armario cuarenta años después.',
    ],
    [
      'compositora-oriol',
      'La compositora Clara Oriol nació en Reus en 1878 y estudió piano en Barcelona y órgano en Bruselas. Estrenó dos zarzuelas con nombre masculino, pues el empresario temía que el público no fuera a ver la obra de una mujer. La más aplaudida, Los molinos de Aldaba, llegó a 212 funciones. Escribió también un método de solfeo que se utilizó en las escuelas hasta 1950. Se exilió en Toulouse en 1939.',
    ],
    [
      'paella',
      'La paella valenciana lleva arroz, pollo, conejo, judía verde plana, garrofó, tomate rallado, azafrán y romero. Se cocina en una sartén ancha y poco honda para que el grano se seque por igual. Una vez echado el arroz no se remueve, y en los últimos minutos se sube el fuego para lograr el socarrat, la capa tostada del fondo. Muchos usan leña de naranjo. El reposo dura cinco minutos.',
    ],
    [
      'cocido',
      'El cocido madrileño se sirve en tres vuelcos: primero la sopa de fideos, después los garbanzos con la verdura y por último las carnes. Los garbanzos se dejan en remojo doce horas con agua tibia y se incorporan cuando el caldo ya hierve, para que no se endurezcan. El tocino, la morcilla y el hueso de jamón le dan fuerza. En las tabernas antiguas era el plato de los martes.',
    ],
    [
      'lince',
      'El lince ibérico estuvo a punto de desaparecer: en 2002 quedaban menos de cien ejemplares en libertad. Se alimenta casi exclusivamente de conejos, de modo que las enfermedades que los diezmaron arrastraron también al felino. Gracias a los centros de cría y a las sueltas se superaron los dos mil individuos en 2023. Su mayor peligro son los atropellos en carretera. La hembra pare de dos a cuatro cachorros en primavera.',
    ],
    [
      'oso-pardo',
      'El oso pardo cantábrico pasa el invierno aletargado en cuevas de roca caliza, aunque los inviernos suaves hacen que algunos no lleguen a dormirse. Las hembras paren en enero oseznos que pesan apenas trescientos gramos. En verano comen arándanos y en otoño bellotas y hayucos para acumular grasa. La población se ha recuperado hasta unos trescientos setenta animales. Los apicultores protegen las colmenas con muros circulares llamados cortines.',
    ],
    [
      'albufera',
      'La Albufera de Valencia es una laguna separada del mar por una franja de arena con pinos. Tres canales, llamados golas, regulan el nivel del agua según las necesidades del arroz. La profundidad media no pasa de un metro. La pesca con redes tradicionales está reservada a los vecinos de El Palmar, que sortean los puestos cada segundo domingo de julio. En invierno acuden patos colorados y garzas.',
    ],
    [
      'teide',
      'El Teide, en Tenerife, alcanza 3.715 metros y es el pico más alto de España. La última erupción en sus laderas, la del Chinyero, ocurrió en noviembre de 1909 y duró diez días. La sombra triangular que proyecta al amanecer sobre el mar llega hasta otras islas. Para subir a la cumbre se necesita un permiso gratuito que se solicita por internet. Solo allí crecen la violeta y el tajinaste rojo.',
    ],
    [
      'ley-alquiler',
      'En España el contrato de alquiler de una vivienda habitual se prorroga obligatoriamente hasta cinco años, o siete si el dueño es una empresa. La fianza legal equivale a una mensualidad. El inquilino puede marcharse pasados seis meses si avisa con treinta días de antelación. El arrendador corre con las reparaciones necesarias para la habitabilidad, salvo las pequeñas, que nacen del desgaste diario. La renta se actualiza una vez al año.',
    ],
    [
      'ley-herencia',
      'Quien recibe una herencia dispone de seis meses desde la muerte para liquidar el impuesto de sucesiones, prorrogables otros seis. Puede aceptarla a beneficio de inventario, con lo que responde de las deudas solo con lo heredado. La legítima reserva a los hijos dos tercios de los bienes en el Código Civil común. El testamento ológrafo debe ir escrito a mano, con fecha y firma, o carece de validez.',
    ],
    [
      'ferrocarril',
      'La primera línea de tren de la península unió Barcelona con Mataró el 28 de octubre de 1848. Los 28 kilómetros se recorrían en treinta y seis minutos. La impulsó Miquel Biada, que había quedado impresionado al ver el ferrocarril de La Habana y murió unos meses antes de la inauguración. Para superar la montaña de Montgat se excavó el primer túnel ferroviario español. Las locomotoras llegaron de Inglaterra.',
    ],
    [
      'presa',
      'La presa de Arroyohondo se construyó entre 1963 y 1971 con una bóveda de hormigón de 92 metros. Inundó el pueblo de Valdenebra, cuyo campanario asoma en los años de sequía, la última vez en 2022. La central produce electricidad para cincuenta mil hogares. Los cuatrocientos vecinos recibieron casas en Nueva Valdenebra, a quince kilómetros, y conservan la fiesta de San Roque. Aguas abajo se han instalado escalas para los barbos.',
    ],
    [
      'azafran',
      'El azafrán son los estigmas secos de una flor morada que se abre en octubre y debe recogerse antes de que caliente el sol. Hacen falta unas ciento cincuenta flores para obtener un gramo. Las mondadoras separan las tres hebras con los dedos, y después se tuestan sobre un cedazo. El de La Mancha tiene denominación de origen desde 2001. Los falsificadores lo mezclan con cártamo o con maíz teñido.',
    ],
    [
      'aceite',
      'El aceite de oliva virgen extra se obtiene solo por medios mecánicos y su acidez no puede superar el 0,8 por ciento. La variedad picual, la más cultivada en Jaén, da un zumo amargo y picante rico en antioxidantes. Las aceitunas recogidas en octubre rinden menos, pero el sabor es más intenso. Debe guardarse en la oscuridad, pues la luz lo enrancia. Abierta la botella, conviene gastarla en tres meses.',
    ],
    [
      'vacuna-balmis',
      'En 1803 el médico Francisco Javier Balmis zarpó de La Coruña para llevar la vacuna contra la viruela a América y Filipinas. Como no podía conservarse, viajaron veintidós niños huérfanos a los que se inoculaba de brazo en brazo cada diez días. La rectora del orfanato, Isabel Zendal, los cuidó durante el trayecto y está considerada la primera enfermera en misión internacional. La expedición duró tres años y vacunó a miles de personas.',
    ],
    [
      'inflacion',
      'La inflación es la subida generalizada y sostenida de los precios, medida en España con el IPC, que calcula cada mes el Instituto Nacional de Estadística. Cuando se dispara, el banco central encarece el dinero para enfriar el consumo. Perjudica sobre todo a quienes viven de una pensión fija y a los ahorradores, mientras que alivia a quienes tienen deudas a tipo constante. Un nivel del dos por ciento se considera sano.',
    ],
    [
      'ajedrez',
      'El monje Ruy López de Segura, párroco en Zafra, publicó en 1561 un tratado de ajedrez en el que analizaba la apertura que hoy lleva su nombre, también llamada española. Recomendaba sentar al rival de cara al sol. Derrotó a los mejores jugadores italianos ante el papa y Felipe II le regaló una torre de oro colgada de una cadena. Perdió en 1575 en Madrid frente a Leonardo da Cutri.',
    ],
    [
      'mosaico-romano',
      'La villa romana de Los Almendros apareció en 1967 cuando un tractor levantó parte de un suelo con figuras. Pertenecía a un productor de vino del siglo IV llamado Severiano, según una inscripción. El salón principal conserva un mosaico de cuarenta metros cuadrados con escenas de la caza del jabalí. La calefacción circulaba bajo el pavimento. Una reconstrucción permite visitarla de noche los viernes de verano. Las teselas se limpian con esponjas.',
    ],
    [
      'seda',
      'La cría del gusano de seda llegó a la península con los árabes y tuvo en Murcia y Granada su gran centro. Las larvas solo comen hojas de morera y durante treinta días multiplican su peso por diez mil. El capullo se compone de un único hilo de hasta mil quinientos metros. Para desenrollarlo se sumerge en agua casi hirviendo, lo que mata a la crisálida. Una plaga de pebrina arruinó la industria hacia 1855.',
    ],
    [
      'eolica',
      'El parque eólico de Cerro Caballar cuenta con veintitrés aerogeneradores de cuatro megavatios instalados en 2016. Las palas miden sesenta y un metros y se detienen cuando el viento sobrepasa noventa kilómetros por hora. La directora técnica, Noelia Bustamante, ideó un sistema de cámaras que para los molinos si se acerca un buitre; la mortalidad de aves bajó un setenta por ciento. Parte de los ingresos financia la escuela infantil de la comarca.',
    ],
    [
      'ceramica',
      'La loza de Talavera se distingue por sus motivos azules y amarillos sobre un esmalte blanco de estaño. El barro se deja reposar seis meses en balsas y se hornea dos veces, a novecientos y a mil grados. El alfarero Ruiz de Luna revivió el oficio en 1908, cuando casi se había perdido. En 2019 fue declarada patrimonio inmaterial junto con la de Puebla, en México, adonde llegó en el siglo XVI.',
    ],
    [
      'trashumancia',
      'La trashumancia llevaba cada otoño millones de ovejas merinas desde los puertos del norte a las dehesas extremeñas. Los caminos, llamados cañadas, tenían noventa varas de ancho y estaban amparados por el Concejo de la Mesta, fundado por Alfonso X en 1273. Los pastores recorrían unos veinte kilómetros diarios, guiados por mastines con collares de púas. Quedan 125.000 kilómetros, hoy usados por senderistas. En Madrid un rebaño atraviesa el centro cada octubre.',
    ],
    [
      'fisica-cajal',
      'Santiago Ramón y Cajal demostró a finales del siglo XIX que el sistema nervioso se compone de células independientes, las neuronas, y no de una red continua como sostenía Golgi. Perfeccionó la tinción de plata de su rival y dibujó a mano más de dos mil preparaciones. Ambos compartieron el Nobel en 1906, aunque el italiano negó su teoría en el discurso. De joven, Cajal fue encarcelado por volar con un cañón casero la puerta de un vecino.',
    ],
    [
      'puente-colgante',
      'El puente transbordador de Vizcaya, inaugurado en 1893, cruza la ría entre Portugalete y Las Arenas sin estorbar a los barcos. Lo proyectó Alberto de Palacio, discípulo de Eiffel. Una barquilla suspendida de cables pasa seis coches y decenas de peatones en minuto y medio. El travesaño se eleva a 45 metros y puede recorrerse a pie. En 1937 fue volado y se rehízo cuatro años después. La Unesco lo protege desde 2006.',
    ],

    ['note-coffee', 'El café lo tomo solo y sin azúcar, pero después de las cinco ya nada con cafeína.'],
    [
      'note-dentist',
      'Cita con el dentista Iriarte el jueves 6 de noviembre a las 17:15, hay que llevar la radiografía',
    ],
    ['note-brother', 'Mi hermano Nacho se ha ido a vivir a Oporto, trabaja de cocinero en un hotel del centro.'],
    ['note-shift', 'Esta semana me toca guardia en la farmacia martes y domingo, el sábado la cubre Beatriz.'],
    ['note-gluten', 'Mi sobrina Julia es celíaca, así que nada de pan ni rebozados cuando viene a comer.'],
    ['note-style', 'Contéstame siempre en español y de tú, con frases cortas, sin listas larguísimas por favor'],
    [
      'note-supplier',
      'El nuevo proveedor de mascarillas es Medisur, piden pago a treinta días y un mínimo de quinientos euros.',
    ],
    ['note-car', 'Pasé la ITV el 12 de mayo, me pidieron cambiar las escobillas y mirar el tubo de escape.'],
    ['note-mother', 'Mamá toma la pastilla de la tensión por la mañana y el anticoagulante a las nueve de la noche.'],
    ['note-train', 'Billetes para Sevilla comprados: AVE del 19 de abril, salida 8:30, coche 5, asientos 4C y 4D.'],
    [
      'note-neighbor',
      'La vecina del tercero, doña Pura, tiene copia de nuestras llaves y riega los geranios en agosto.',
    ],
    ['note-school', 'Reunión del cole de Hugo aplazada al lunes 20 a las seis, hablarán de la excursión a Atapuerca.'],
    [
      'note-printer',
      'La impresora de etiquetas está en garantía hasta enero, si se atasca llamo a Sergio del soporte.',
    ],
    ['note-gift', 'A Carmen le gustó mucho un kimono verde, puede ser buen regalo para su jubilación en junio.'],
    ['note-run', 'Corro los lunes y miércoles antes de abrir, la rodilla derecha me molesta en las bajadas.'],
    ['note-mechanic', 'el taller de Fermín cobra 45 la hora, la correa de distribución saldría por unos 620'],
    ['note-inventory', 'El inventario anual lo hacemos el 3 de enero con la persiana bajada, empieza a las ocho.'],
    ['note-wedding', 'La boda de Irene es el 21 de septiembre en una bodega de Peñafiel, hay autobús desde la plaza.'],
    ['note-intern', 'El estudiante en prácticas se llama Samuel Ortega, viene de Salamanca y estará hasta marzo.'],
    [
      'note-cat',
      'Nuestra gata Canela no soporta el transportín, hay que ponerle la manta azul y no encerrarla antes de salir.',
    ],
    ['note-boss', 'Don Anselmo, el titular, no quiere mensajes de WhatsApp, solo llamadas antes de las dos.'],
    ['note-club', 'En el club de lectura leemos a Ana María Matute, nos vemos el último jueves en casa de Gema'],
    ['note-boiler', 'La caldera pierde presión, el técnico viene el viernes de diez a doce, revisión 90 euros.'],
    ['note-password', 'La clave del armario de estupefacientes la cambia Beatriz cada mes, pregúntale a ella.'],
    ['note-passport', 'El pasaporte de Hugo caduca el 28 de febrero, hay que pedir cita en comisaría en diciembre'],
    ['note-guitar', "Doy clase de saxofón con Marcos los jueves, este curso preparamos un tema de Paquito D'Rivera."],
    ['note-invoice', 'Las facturas del laboratorio se mandan a la gestoría antes del día diez, con copia a Lola.'],
    ['note-garden', 'En la terraza hemos plantado pimientos de Padrón y albahaca, los tomates los quitó el pulgón.'],
    ['note-film', 'No me gustan las películas bélicas, prefiero comedias francesas o documentales de naturaleza.'],
    ['note-friend', 'Mi amiga Pilar ha abierto una heladería en Cádiz, quiere que la visite en Carnaval.'],
  ],
  questions: [
    ['¿Qué es el socarrat?', ['paella']],
    ['¿Qué regulan las golas?', ['albufera']],
    ['Altura del Teide', ['teide']],
    ['¿Quién era Isabel Zendal?', ['vacuna-balmis']],
    ['¿Cuántos linces quedan?', ['lince']],
    ['¿Dónde vive Nacho?', ['note-brother']],
    ['¿Quién es Samuel?', ['note-intern']],
    ['¿Cuándo voy al dentista?', ['note-dentist']],

    ['¿Qué combustible se usaba al principio en el faro de Punta Almena?', ['lighthouse-punta']],
    ['¿En qué se ha transformado la antigua casa del farero de Tamborela?', ['lighthouse-isla']],
    ['¿Quién fue el máximo goleador de la Ferroviaria de Villasol y qué mote tenía?', ['club-ferroviaria']],
    ['¿Qué arrojan los hinchas del Almazara cuando gana su equipo?', ['club-baloncesto']],
    ['¿Qué analítica confirma la falta de hierro en la sangre?', ['anemia-hierro']],
    ['¿Por qué tener un solo gen de la anemia falciforme puede ser una ventaja?', ['anemia-falciforme']],
    ['¿Dónde apareció la guitarra robada a Luz Serrat?', ['guitarra-luthier']],
    ['¿Por qué firmó Clara Oriol sus zarzuelas como si fuera un hombre?', ['compositora-oriol']],
    ['¿En qué orden se comen los platos del cocido?', ['cocido']],
    ['¿Cómo se defienden las colmenas de los osos en la cordillera Cantábrica?', ['oso-pardo']],
    ['¿Cuántas flores se necesitan para un gramo de azafrán?', ['azafran']],
    ['¿Por qué conviene guardar el aceite en un lugar oscuro?', ['aceite']],
    ['¿Qué no puede comer mi sobrina y por qué?', ['note-gluten']],
    ['¿A qué hora toma mi madre el anticoagulante?', ['note-mother']],
    ['¿Qué regalo le haría ilusión a Carmen cuando se retire?', ['note-gift']],
    ['¿Qué tipo de cine no me gusta nada?', ['note-film']],
    ['¿Quién conoce la contraseña del armario de los estupefacientes?', ['note-password']],
    ['¿Qué días de esta semana me toca trabajar de guardia?', ['note-shift']],
    ['¿En qué ciudad montó Pilar su negocio de helados?', ['note-friend']],
    ['¿Qué cultivamos este año en la terraza?', ['note-garden']],

    [
      'Mi casero quiere que me vaya al terminar el primer año. ¿Cuánto tiempo puede durar como mínimo un contrato y cuándo puedo irme yo?',
      ['ley-alquiler'],
    ],
    [
      'Si mi abuelo dejó deudas, ¿hay alguna forma de aceptar lo que me toca sin tener que responder de ellas con mi propio dinero?',
      ['ley-herencia'],
    ],
    [
      '¿Quién promovió el primer tren de España, qué viaje lo inspiró, y llegó a ver con sus propios ojos la apertura de la línea?',
      ['ferrocarril'],
    ],
    [
      '¿Qué edificio del pueblo sumergido bajo el embalse de Arroyohondo vuelve a verse cuando llueve poco, y adónde mandaron a vivir a sus habitantes?',
      ['presa'],
    ],
    [
      'Estoy preparando una clase de economía. ¿A quiénes beneficia y a quiénes hace daño que los precios suban sin parar durante mucho tiempo?',
      ['inflacion'],
    ],
    [
      '¿Qué consejo un poco tramposo daba a los jugadores aquel cura de Zafra que escribió un libro sobre aperturas en el siglo XVI?',
      ['ajedrez'],
    ],
    [
      'Pienso proponer una visita nocturna al grupo. ¿Qué días se puede ir a ver la villa romana de Los Almendros y qué representa su mosaico?',
      ['mosaico-romano'],
    ],
    [
      '¿Cómo consiguieron en Cerro Caballar que los aerogeneradores mataran menos buitres y en qué proporción llegó a reducirse el número de aves muertas?',
      ['eolica'],
    ],
    [
      'Tengo que organizar el viaje a Andalucía. ¿Qué día y a qué hora sale nuestro tren a Sevilla y en qué vagón vamos sentados?',
      ['note-train'],
    ],
    [
      'Este verano nos vamos dos semanas fuera. ¿A quién podemos pedirle que abra la casa con sus llaves y que se ocupe de las plantas?',
      ['note-neighbor'],
    ],
    [
      '¿Cuándo y dónde se casa Irene, y cómo podemos llegar hasta allí si ninguno de nosotros quiere conducir después de la cena?',
      ['note-wedding'],
    ],
    [
      '¿Cómo tengo que contactar con el titular de la farmacia si hay algo urgente, y hasta qué hora del día es posible localizarlo?',
      ['note-boss'],
    ],
  ],
  unanswerable: [
    '¿Cuánto mide la torre Eiffel?',
    '¿Cómo duermen los delfines?',
    '¿Quién escribió Moby Dick?',
    '¿Qué pasa en un agujero negro?',
    '¿Cuántas lunas tiene Saturno?',
    '¿Qué marca es nuestra lavadora?',
    '¿Cómo se arma una tienda de campaña?',
    '¿Cuándo vence mi abono del gimnasio?',
    '¿Qué idioma se habla en Mozambique?',
    '¿Cómo se juega al curling?',
    '¿Quién fue el primer astronauta japonés?',
    '¿Por qué los pingüinos no vuelan?',
    '¿Qué dijo el arquitecto sobre la reforma del ático?',
    '¿Cómo solicitar la ciudadanía canadiense?',
    '¿Qué síntomas tiene una apendicitis?',
    '¿En qué se diferencia un ordenador cuántico de uno corriente?',
    '¿Cuántos kilómetros hay de Nairobi a Mombasa y cuánto se tarda en autobús?',
    '¿De qué color era el sofá que vimos el año pasado en la tienda de muebles del polígono?',
    'Quiero adoptar un loro. ¿Qué papeles me van a pedir y cuántos años puede llegar a vivir?',
    '¿Qué reformas emprendió el emperador Meiji y cómo cambiaron la vida de los samuráis?',
  ],
};

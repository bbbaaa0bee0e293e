// Shows the description of this server's API. Nothing is asked of any other host: no validator, no fonts, no sign-in of others.
const place = document.getElementById('api');
SwaggerUIBundle({
  url: place.dataset.description,
  domNode: place,
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  // A key that was typed in is forgotten with the page.
  persistAuthorization: false,
  validatorUrl: null,
});

import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  badHostname: [
    400,
    'E_DOMAIN_HOSTNAME',
    'hostname {fault}',
    {
      field: 'hostname',
      remedy: 'give a name such as www.example.com, or *.example.com for all hosts directly below it'
    }
  ],
  reserved: [
    400,
    'E_DOMAIN_RESERVED',
    'hostname: {hostname} is {what}',
    { field: 'hostname', remedy: 'choose a name that nothing else is asked by' }
  ],
  badPath: [
    400,
    'E_DOMAIN_PATH',
    '{field} is no path',
    'use up to 255 characters of A-Z, a-z, 0-9 and - . _ ~ / without // and dots alone between slashes'
  ],
  badSslMode: [400, 'E_DOMAIN_SSL_MODE', 'ssl_mode is automatic, custom or off', { field: 'ssl_mode' }],
  dnsChallenge: [
    400,
    'E_DOMAIN_DNS_CHALLENGE',
    'ssl_mode: certificates are not issued by DNS challenge here',
    { field: 'ssl_mode', remedy: 'upload a certificate and use custom' }
  ],
  wildcardAutomatic: [
    400,
    'E_DOMAIN_WILDCARD_TLS',
    'ssl_mode: an authority issues a certificate for {hostname} by DNS challenge only, which is not done here',
    { field: 'ssl_mode', remedy: 'upload a wildcard certificate and use custom, or use off' }
  ],
  contradiction: [
    400,
    'E_DOMAIN_SSL_CONTRADICTION',
    'ssl_enabled says the opposite of ssl_mode',
    { field: 'ssl_enabled', remedy: 'leave ssl_enabled out: it follows from ssl_mode' }
  ],
  forceWithoutTls: [
    400,
    'E_DOMAIN_FORCE_HTTPS',
    'force_https leads nowhere: the domain is not served over TLS',
    { field: 'force_https', remedy: 'send false, or use another ssl_mode' }
  ],
  noCertificate: [
    400,
    'E_DOMAIN_CERTIFICATE_MISSING',
    'certificate_id is required with ssl_mode custom',
    { field: 'certificate_id', remedy: 'choose one of GET /api/certificates/usable' }
  ],
  unknownCertificate: [
    400,
    'E_DOMAIN_CERTIFICATE',
    'certificate_id: there is no such certificate',
    { field: 'certificate_id', remedy: 'choose one of GET /api/certificates/usable' }
  ],
  notCovered: [
    400,
    'E_DOMAIN_CERTIFICATE_COVERAGE',
    'certificate_id: the certificate {name} is not for {hostname}',
    { field: 'certificate_id', remedy: 'choose one of GET /api/certificates/usable' }
  ],
  mixedTls: [
    400,
    'E_DOMAIN_TLS_MIXED',
    'ssl_mode and certificate_id have to be the same for all paths of {hostname}',
    {
      field: 'ssl_mode',
      remedy:
        'the other paths have {mode}; use that, or change it at one of them, which all paths in its application follow, and where they are in several, remove those of the others first'
    }
  ],
  badPort: [
    400,
    'E_DOMAIN_PORT',
    'container_port is a number from 1 to 65535, or null',
    { field: 'container_port' }
  ],
  badAdvanced: [
    400,
    'E_DOMAIN_ADVANCED_CONFIG',
    'advanced_config: {reason}',
    {
      field: 'advanced_config',
      remedy:
        'send a list of handlers, each an object whose handler is one of headers, rewrite, redir, handle_path, subroute, authentication'
    }
  ],
  badFeatureType: [
    400,
    'E_FEATURE_TYPE',
    'feature_type is one of basic_auth, headers, ip_allowlist, redirect, rate_limit',
    { field: 'feature_type' }
  ],
  badFeature: [400, 'E_FEATURE_CONFIG', 'config: {reason}', { field: 'config' }],
  unable: [
    409,
    'E_PROXY_UNABLE',
    '{field}: the proxy that serves domains here ({driver}) cannot do {what}',
    '{help}'
  ],
  taken: [
    409,
    'E_DOMAIN_TAKEN',
    'hostname: {hostname} is in use on this platform',
    { field: 'hostname', remedy: 'choose another one, or ask an admin' }
  ],
  takenHere: [
    409,
    'E_DOMAIN_DUPLICATE',
    'hostname: {hostname}{path} leads to an application of this project already',
    { field: 'hostname', remedy: 'give another path, or change the domain that is there' }
  ],
  tooMany: [
    409,
    'E_DOMAIN_LIMIT',
    'the application has {limit} domains already',
    'remove one that is not used any more'
  ],
  noDriver: [
    409,
    'E_PROXY_NONE',
    'no proxy is on: nothing is served by hostnames',
    'enable the plugin "proxy-forwarder", or one that brings a proxy driver'
  ],
  notFound: [404, 'E_DOMAIN_NOT_FOUND', 'the domain {domainId} does not exist here'],
  featureNotFound: [404, 'E_FEATURE_NOT_FOUND', 'the route feature {featureId} does not exist here']
})

import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  noPort: [
    503,
    'E_DIRECT_PORT_UNAVAILABLE',
    'the platform cannot listen on {address} for the direct address ({reason})',
    'free a port, give more of them in BUSBAR_DIRECT_PORTS, or set BUSBAR_DIRECT_HOST or BUSBAR_DIRECT_BIND to an address of this machine'
  ],
  notOpen: [
    409,
    'E_DIRECT_NOT_OPEN',
    'the application {applicationId} has no direct address yet; it gets one with its next deploy'
  ]
})

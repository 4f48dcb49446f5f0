/*
{"fault": "uncoalesced_access", "severity": "mild", "also": ["memory_coalescing"],
 "grid": [65536], "block": [256],
 "args": [{"f32": 117440512, "fill": "random"}, {"int": 16777216}, {"float": 0.01}]}
Particles as an array of structures: position, velocity and mass, seven floats each.
*/
struct Particle { float x, y, z, vx, vy, vz, mass; };
extern "C" __global__ void particles_aos(Particle* particles, int n, float dt) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  particles[i].x += dt * particles[i].vx;
  particles[i].y += dt * particles[i].vy;
  particles[i].z += dt * particles[i].vz;
}

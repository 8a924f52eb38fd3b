//! Where visitors are, and how far apart the places are.
//!
//! A round trip takes twice the great-circle distance times [`ROUTE`], at two thirds of the speed of light. Measured
//! paths across the Internet are about 2.1 times as long as the line of sight in this sense (Bozkurt et al., *Dissecting
//! Latency in the Internet's Fiber Infrastructure*, 2018); a platform's own network takes shorter ones. With 1.5,
//! London and New York are 84 ms apart, which is what carriers measure between them.

use std::time::Duration;

/// Length of the fibre between two places, relative to the great circle.
const ROUTE: f64 = 1.5;
/// Light in fibre: two thirds of its speed in a vacuum, km/s.
const FIBRE_KM_PER_SECOND: f64 = 200_000.0;
const EARTH_RADIUS_KM: f64 = 6_371.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Continent {
    Africa,
    Asia,
    Europe,
    NorthAmerica,
    Oceania,
    SouthAmerica,
}

impl Continent {
    pub const ALL: [Self; 6] =
        [Self::Africa, Self::Asia, Self::Europe, Self::NorthAmerica, Self::Oceania, Self::SouthAmerica];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Africa => "Africa",
            Self::Asia => "Asia",
            Self::Europe => "Europe",
            Self::NorthAmerica => "North America",
            Self::Oceania => "Oceania",
            Self::SouthAmerica => "South America",
        }
    }

    /// Round trip between a visitor and the platform's nearest location, from home and mobile networks.
    const fn last_mile(self) -> Duration {
        Duration::from_millis(match self {
            Self::Europe | Self::NorthAmerica | Self::Oceania => 15,
            Self::Asia | Self::SouthAmerica => 25,
            Self::Africa => 35,
        })
    }
}

/// A location of the platform, with the visitors around it.
#[derive(Debug, Clone, Copy)]
pub struct City {
    pub name: &'static str,
    pub continent: Continent,
    latitude: f64,
    longitude: f64,
    /// The city's share of all visitors, in thousandths: roughly by Internet users of its region.
    pub share: u32,
}

const fn city(name: &'static str, continent: Continent, latitude: f64, longitude: f64, share: u32) -> City {
    City { name, continent, latitude, longitude, share }
}

/// The visitors of an international shop.
pub const CITIES: [City; 30] = [
    city("London", Continent::Europe, 51.51, -0.13, 60),
    city("Frankfurt", Continent::Europe, 50.11, 8.68, 75),
    city("Paris", Continent::Europe, 48.86, 2.35, 55),
    city("Madrid", Continent::Europe, 40.42, -3.70, 35),
    city("Warsaw", Continent::Europe, 52.23, 21.01, 35),
    city("Stockholm", Continent::Europe, 59.33, 18.07, 20),
    city("Istanbul", Continent::Europe, 41.01, 28.98, 30),
    city("New York", Continent::NorthAmerica, 40.71, -74.01, 70),
    city("Ashburn", Continent::NorthAmerica, 39.04, -77.49, 50),
    city("Chicago", Continent::NorthAmerica, 41.88, -87.63, 45),
    city("Dallas", Continent::NorthAmerica, 32.78, -96.80, 40),
    city("Los Angeles", Continent::NorthAmerica, 34.05, -118.24, 55),
    city("Toronto", Continent::NorthAmerica, 43.65, -79.38, 25),
    city("Mexico City", Continent::NorthAmerica, 19.43, -99.13, 25),
    city("São Paulo", Continent::SouthAmerica, -23.55, -46.63, 45),
    city("Buenos Aires", Continent::SouthAmerica, -34.60, -58.38, 15),
    city("Bogotá", Continent::SouthAmerica, 4.71, -74.07, 15),
    city("Santiago", Continent::SouthAmerica, -33.45, -70.67, 10),
    city("Johannesburg", Continent::Africa, -26.20, 28.05, 15),
    city("Lagos", Continent::Africa, 6.52, 3.38, 15),
    city("Cairo", Continent::Africa, 30.04, 31.24, 15),
    city("Mumbai", Continent::Asia, 19.08, 72.88, 50),
    city("Delhi", Continent::Asia, 28.61, 77.21, 35),
    city("Singapore", Continent::Asia, 1.35, 103.82, 35),
    city("Jakarta", Continent::Asia, -6.21, 106.85, 25),
    city("Tokyo", Continent::Asia, 35.68, 139.69, 40),
    city("Seoul", Continent::Asia, 37.57, 126.98, 25),
    city("Hong Kong", Continent::Asia, 22.32, 114.17, 20),
    city("Dubai", Continent::Asia, 25.20, 55.27, 10),
    city("Sydney", Continent::Oceania, -33.87, 151.21, 10),
];

/// The place of Redis, or of its primary.
pub const PRIMARY: usize = 1;
/// Read replicas, besides the primary.
pub const REPLICAS: [usize; 4] = [8, 14, 23, 25];

impl City {
    /// Round trip between a visitor and this location.
    #[must_use]
    pub const fn last_mile(&self) -> Duration {
        self.continent.last_mile()
    }

    /// Round trip between two locations. Programs in one location are half a millisecond apart.
    #[must_use]
    pub fn round_trip(&self, other: &Self) -> Duration {
        let distance = self.distance_km(other) * ROUTE;
        Duration::from_secs_f64(2.0 * distance / FIBRE_KM_PER_SECOND) + Duration::from_micros(500)
    }

    /// The great-circle distance (haversine formula).
    fn distance_km(&self, other: &Self) -> f64 {
        let [from, to] = [self, other].map(|city| city.latitude.to_radians());
        let across = (other.longitude - self.longitude).to_radians();
        let half_chord = ((to - from) / 2.0).sin().powi(2) + from.cos() * to.cos() * (across / 2.0).sin().powi(2);
        2.0 * EARTH_RADIUS_KM * half_chord.sqrt().asin()
    }
}

/// The region of Redis that is nearest to a city.
#[must_use]
pub fn nearest_region(city: usize) -> usize {
    let distance = |region: &usize| CITIES[city].round_trip(&CITIES[*region]);
    REPLICAS.into_iter().chain([PRIMARY]).min_by_key(distance).unwrap_or(PRIMARY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> usize {
        CITIES.iter().position(|city| city.name == name).unwrap()
    }

    #[test]
    fn the_shares_are_complete() {
        assert_eq!(CITIES.iter().map(|city| city.share).sum::<u32>(), 1_000);
    }

    #[test]
    fn distances_are_those_of_an_atlas() {
        for (from, to, kilometres) in [("London", "New York", 5_570.0), ("Frankfurt", "Sydney", 16_500.0)] {
            let distance = CITIES[named(from)].distance_km(&CITIES[named(to)]);
            assert!((distance / kilometres - 1.0).abs() < 0.01, "{from} to {to}: {distance} km");
        }
        assert_eq!(CITIES[named("Delhi")].last_mile().as_millis(), 25);
    }

    #[test]
    fn a_city_reads_from_its_nearest_region() {
        for (city, region) in [("Sydney", "Singapore"), ("Chicago", "Ashburn"), ("Lagos", "Frankfurt")] {
            assert_eq!(CITIES[nearest_region(named(city))].name, region, "{city}");
        }
    }
}
